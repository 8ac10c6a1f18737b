"""A control plane as `make up` starts it, seen from outside."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import requests

from modelforge.children import dies_with_parent
from tests.parts.ports import until


class Up:
    """The running command, its folder, and all processes that it started."""

    def __init__(self, command: Sequence[str], folder: Path, var: Path, port: int, **variables: str) -> None:
        self.var = var
        self.log = folder / f"up-{port}.log" if os.access(folder, os.W_OK) and folder != Path.cwd() else var / "up.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._before = self._written()
        kept = {name: text for name, text in os.environ.items() if not name.startswith("MODELFORGE_")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env=kept | {"MODELFORGE_VAR_DIR": str(var), "PORT": str(port)} | variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=dies_with_parent(),
            )

    def told(self) -> dict[str, str]:
        """What up.json says, once it is there."""
        until(self._ready, f"up.json; {self.log}", within=150, every=0.2)
        found: dict[str, str] = json.loads((self.var / "up.json").read_text())
        return found

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self._written() != self._before

    def _written(self) -> int:
        """When up.json was written: a second start writes it again."""
        try:
            return (self.var / "up.json").stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    @property
    def supervisor(self) -> psutil.Process:
        """The process that watches the others: `make` may stand before it."""
        tree = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        return next(process for process in tree if "modelforge.up" in process.cmdline())

    def family(self) -> list[psutil.Process]:
        """All that it started."""
        return self.supervisor.children(recursive=True)

    def node(self) -> dict[str, Any]:
        """The one node of its fleet."""
        told = self.told()
        answer = requests.get(
            f"{told['url']}/api/v1/hardware/nodes",
            headers={"X-ModelForge-Admin-Token": told["admin_token"]},
            timeout=20,
        )
        assert answer.status_code == 200, answer.text
        nodes: list[dict[str, Any]] = answer.json()["results"]
        assert len(nodes) == 1
        return nodes[0]

    def interrupt(self) -> int:
        """As Ctrl-C does; the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(60)

    def end(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(60)
