"""Real agent processes with a state folder of their own, ended with the test."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agent.scripted import CREDENTIAL

ROOT = Path(__file__).parents[2]


def environment(folder: Path, url: str, **variables: str) -> dict[str, str]:
    """The variables of an agent whose folders all lie below ``folder``."""
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "HOME", "SSL_CERT_FILE")}
    return kept | {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MODELFORGE_AGENT_CONTROL_PLANE_URL": url,
        "MODELFORGE_AGENT_STATE_DIR": str(folder / "state"),
        "MODELFORGE_AGENT_HF_CACHE_DIR": str(folder / "hf-cache"),
        "MODELFORGE_AGENT_ARTIFACT_DIR": str(folder / "artifacts"),
        "MODELFORGE_AGENT_QUARANTINE_DIR": str(folder / "quarantine"),
        "MODELFORGE_AGENT_RUN_DIR": str(folder / "run"),
        "MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE": "true",
        "MODELFORGE_AGENT_LOG_FORMAT": "json",
        "MODELFORGE_AGENT_LOG_LEVEL": "debug",
        "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody: no test asks the real one
        **variables,
    }


class Agent:
    """One ``python -m agent run``."""

    def __init__(self, env: Mapping[str, str], *, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent", "run"],
            env=dict(env),
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """All that it said so far."""
        return "".join(self.lines)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its log, line by line."""
        return [json.loads(line) for line in self.lines]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(40)
        self._reader.join(5)
        return code

    def end(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(5)
        if self.process.stdout:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)


def command(env: Mapping[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command of the agent, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        env=dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def joined(folder: Path) -> None:
    """A state folder as an agent left it."""
    state = folder / "state"
    state.mkdir()
    for name in ("node-id", "node-id.previous"):
        (state / name).write_text("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11\n")
    for name in ("node-credential", "node-credential.previous"):
        (state / name).write_text(f"{CREDENTIAL}\n")
