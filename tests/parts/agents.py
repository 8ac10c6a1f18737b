"""A real agent: the process, its folders, its log, and its commands run beside it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from modelforge.children import dies_with_parent

ROOT = Path(__file__).parents[2]
FOLDERS = ("state", "hf-cache", "artifacts", "quarantine")


class Agent:
    """``python -m agent run`` on folders of its own; ``variables`` are its environment, by their whole names."""

    def __init__(self, folder: Path, url: str, **variables: str) -> None:
        self.folder = folder
        self.log_file = folder / "agent.log"
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
        self.environment = kept | {
            "PYTHONPATH": str(ROOT),
            "MODELFORGE_AGENT_CONTROL_PLANE_URL": url,
            "MODELFORGE_AGENT_STATE_DIR": str(folder / "state"),
            "MODELFORGE_AGENT_HF_CACHE_DIR": str(folder / "hf-cache"),
            "MODELFORGE_AGENT_ARTIFACT_DIR": str(folder / "artifacts"),
            "MODELFORGE_AGENT_QUARANTINE_DIR": str(folder / "quarantine"),
            "MODELFORGE_AGENT_RUN_DIR": str(folder / "run"),
            "MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE": "true",
            "MODELFORGE_AGENT_PARK_SECONDS": "1",
            "MODELFORGE_AGENT_LOG_LEVEL": "debug",
            "MODELFORGE_AGENT_LOG_FORMAT": "json",
            **variables,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Agent":
        """Start it."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "agent", "run"],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),
            )
        return self

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As a crash or a power cut ends it."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """As an operator stops it; its exit code."""
        return self._signal(signal.SIGTERM)

    def end(self) -> None:
        """Make sure that it is gone."""
        if self.running:
            self.kill()

    @property
    def log(self) -> str:
        """All that it said."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    @property
    def node_id(self) -> str:
        """Who it is; "" before it knows."""
        return self._state("node-id")

    @property
    def credential(self) -> str:
        """What it proves that with; "" before it joined."""
        return self._state("node-credential")

    def command(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """One of the agent's commands on the same folders, run to its end."""
        return subprocess.run(
            [sys.executable, "-m", "agent", *arguments],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def health(self) -> tuple[int, str]:
        """What a container's health check sees: exit code and line."""
        done = self.command("health")
        return done.returncode, done.stdout.strip()

    def _state(self, name: str) -> str:
        path = self.folder / "state" / name
        return path.read_text().strip() if path.exists() else ""

    def _signal(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(20)
