"""What ends the agent, or its start: half an agent is none, and what only the operator can mend is told at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.processes import ROOT, command, environment, joined
from tests.agent.scripted import ControlPlane
from tests.agent.test_main import JOINING


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("pulse.Pulse.turn = lambda self: 1 / 0", "the pulse loop crashed"),
        ("observer.Observer.turn = lambda self: 1 / 0", "the observer loop crashed"),
        ("worker.Worker.turn = lambda self: 1 / 0", "the worker loop crashed"),
        (
            "pulse.Pulse.turn = lambda self: __import__('time').sleep(60); pulse.LONGEST_TURN = timedelta(); "
            "health.HANG_GRACE = timedelta(); daemon._WATCH_EVERY = timedelta(seconds=0.1)",
            "the beat loop hangs",
        ),
    ],
)
def test_half_an_agent_ends_with_1(plane: ControlPlane, tmp_path: Path, patch: str, words: str) -> None:
    """Field case 40: any loop's end is the agent's end, so that a restart policy sees it."""
    joined(tmp_path)
    code = (
        "import sys; from datetime import timedelta; from agent import daemon, health, observer, pulse, worker\n"
        f"{patch}\nfrom agent.__main__ import main; sys.exit(main(['run']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path, plane.url), cwd=ROOT, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert found.returncode == 1, found.stderr
    assert words in found.stdout


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"MODELFORGE_AGENT_CONTROL_PLANE_URL": ""}, 78, "MODELFORGE_AGENT_CONTROL_PLANE_URL is missing"),
        (
            {"MODELFORGE_AGENT_TLS_VERIFY": "x", "MODELFORGE_AGENT_LOG_LEVEL": "y"},
            78,
            "MODELFORGE_AGENT_LOG_LEVEL must",
        ),
        ({}, 78, "MODELFORGE_AGENT_ENROLLMENT_TOKEN"),
        ({"MODELFORGE_AGENT_RUN_DIR": "/proc/nowhere", **JOINING}, 74, "MODELFORGE_AGENT_RUN_DIR"),
        ({"MODELFORGE_AGENT_STATE_DIR": "/proc/nowhere", **JOINING}, 74, "/proc/nowhere cannot be read and written"),
    ],
)
def test_what_only_the_operator_can_mend_ends_the_start(
    plane: ControlPlane, tmp_path: Path, variables: dict[str, str], code: int, words: str
) -> None:
    found = command(environment(tmp_path, plane.url) | variables, "run")
    assert found.returncode == code
    assert words in found.stdout
    assert plane.requests == []


def test_a_damaged_identity_ends_the_start_and_asks_nobody(plane: ControlPlane, tmp_path: Path) -> None:
    """Field case 12."""
    joined(tmp_path)
    for name in ("node-id", "node-id.previous"):
        (tmp_path / "state" / name).write_bytes(b"\0" * 37)
    found = command(environment(tmp_path, plane.url, **JOINING), "run")
    assert found.returncode == 78
    assert "state_corrupt" in found.stdout
    assert plane.requests == []
