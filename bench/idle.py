"""What the idle agent costs: resident memory and CPU at the default interval, against the stand-in driver."""

import tempfile
import time
from datetime import timedelta
from pathlib import Path

import psutil
from django.core.management import call_command
from django.utils import timezone

from bench import whole
from bench.report import Report
from nodes.models import Heartbeat

SETTLE = timedelta(seconds=20)
WATCH = timedelta(seconds=120)


def main(report: Report) -> None:
    """A real agent with two stand-in GPUs beats against a real control plane for two minutes."""
    call_command("migrate", verbosity=0)
    report.heading("The idle agent, two GPUs of the stand-in driver, default interval")
    with (
        tempfile.TemporaryDirectory(prefix="modelforge-idle-") as folder,
        whole.agent_online(Path(folder), timezone.now(), of_web={}) as agent,
    ):
        time.sleep(SETTLE.total_seconds())
        process = psutil.Process(agent.pid)
        before, start = process.cpu_times(), time.monotonic()
        beats = Heartbeat.objects.get().sequence
        time.sleep(WATCH.total_seconds())
        after, took = process.cpu_times(), time.monotonic() - start
        resident = process.memory_info().rss / 2**20
        files = process.num_fds()
        beats = Heartbeat.objects.get().sequence - beats
    share = (after.user + after.system - before.user - before.system) / took * 100
    report.row("beats, open files", f"{beats}", f"{files}")
    report.bound("MiB resident", resident, most=36)
    report.bound("% of a core", share, most=0.1)
