"""A web process and a real agent beside it, for what is measured over the whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from enrollment import admission
from nodes.callers import SYSTEM
from nodes.models import Heartbeat
from tests.nvml import standin
from tests.parts.ports import free_port, until

ROOT = Path(__file__).parent.parent
_PLACES = {"STATE": "state", "HF_CACHE": "hf-cache", "ARTIFACT": "artifacts", "QUARANTINE": "quarantine"}
_WEB = ["granian", "--interface", "wsgi", "--host", "127.0.0.1", "--blocking-threads", "1", "--log-level", "warning"]


@contextmanager
def agent_online(
    folder: Path, now: datetime, *, of_web: dict[str, str], **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The agent, once it is online; ``of_web`` and ``variables`` are added to the two environments."""
    _, token = admission.invite(admission.Invitation(display_name="bench"), by=SYSTEM, now=now)
    port = free_port()
    web = subprocess.Popen(
        [sys.executable, "-m", *_WEB, "--port", str(port), "modelforge.wsgi:application"],
        cwd=ROOT,
        env=os.environ | of_web,
    )
    agent = subprocess.Popen(
        [sys.executable, "-m", "agent", "run"],
        cwd=ROOT,
        env=_environment(folder, port, token) | variables,
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: Heartbeat.objects.filter(liveness="online").exists(), "the agent is online", within=60)
        yield agent
    finally:
        for child in (agent, web):
            child.terminate()
        for child in (agent, web):
            child.wait(20)


def _environment(folder: Path, port: int, token: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MODELFORGE_", "DJANGO_"))}
    for place in _PLACES.values():
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
        | {f"MODELFORGE_AGENT_{name}_DIR": str(folder / place) for name, place in _PLACES.items()}
    )
