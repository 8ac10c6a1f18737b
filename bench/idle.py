"""What the idle agent costs: resident memory and CPU at the default interval, against the stand-in driver."""

import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import psutil
from django.core.management import call_command
from django.utils import timezone

from bench.report import Report
from enrollment import admission
from nodes.callers import SYSTEM
from nodes.models import Heartbeat
from tests.nvml import standin
from tests.parts.ports import free_port, until

SETTLE = timedelta(seconds=20)
WATCH = timedelta(seconds=120)


def main(report: Report) -> None:
    """A real agent with two stand-in GPUs beats against a real control plane for two minutes."""
    call_command("migrate", verbosity=0)
    report.heading("The idle agent, two GPUs of the stand-in driver, default interval")
    now = timezone.now()
    _, token = admission.invite(admission.Invitation(display_name="idle"), by=SYSTEM, now=now)
    port = free_port()
    root = Path(__file__).parent.parent
    web = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "granian",
            "--interface",
            "wsgi",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--blocking-threads",
            "1",
            "--log-level",
            "warning",
            "modelforge.wsgi:application",
        ],
        cwd=root,
    )
    with tempfile.TemporaryDirectory(prefix="modelforge-idle-") as folder:
        agent = subprocess.Popen(
            [sys.executable, "-m", "agent", "run"],
            cwd=root,
            env=_environment(Path(folder), port, token),
            stdout=subprocess.DEVNULL,
        )
        try:
            until(lambda: Heartbeat.objects.filter(liveness="online").exists(), "the agent is online", within=60)
            time.sleep(SETTLE.total_seconds())
            process = psutil.Process(agent.pid)
            before, start = process.cpu_times(), time.monotonic()
            beats = Heartbeat.objects.get().sequence
            time.sleep(WATCH.total_seconds())
            after, took = process.cpu_times(), time.monotonic() - start
            resident = process.memory_info().rss / 2**20
            files = process.num_fds()
            beats = Heartbeat.objects.get().sequence - beats
        finally:
            for child in (agent, web):
                child.terminate()
            for child in (agent, web):
                child.wait(20)
    share = (after.user + after.system - before.user - before.system) / took * 100
    report.row("beats, open files", f"{beats}", f"{files}")
    report.bound("MiB resident", resident, most=36)
    report.bound("% of a core", share, most=0.1)


def _environment(folder: Path, port: int, token: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MODELFORGE_", "DJANGO_"))}
    places = {"STATE": "state", "HF_CACHE": "hf-cache", "ARTIFACT": "artifacts", "QUARANTINE": "quarantine"}
    for place in places.values():
        (folder / place).mkdir()
    return (
        kept
        | standin.environment(devices=2)
        | {
            "MODELFORGE_AGENT_CONTROL_PLANE_URL": f"http://127.0.0.1:{port}",
            "MODELFORGE_AGENT_ENROLLMENT_TOKEN": token,
            "MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE": "true",
            "MODELFORGE_AGENT_RUN_DIR": str(folder / "run"),
        }
        | {f"MODELFORGE_AGENT_{name}_DIR": str(folder / place) for name, place in places.items()}
    )
