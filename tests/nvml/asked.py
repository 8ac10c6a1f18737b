"""A running agent's Gpus to ask in tests, in a process of its own, on a stand-in that can be changed meanwhile."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from agent import wire
from tests.nvml import standin

Facts = tuple[wire.GpuRuntime, list[wire.AcceleratorFacts]]
Telemetry = tuple[str, list[wire.AcceleratorTelemetry]]

_REPOSITORY = Path(__file__).parents[2]


class Asked:
    """The process; every answer has been through the wire's own types, as the control plane would read it."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self._state = folder / "state"
        self._calls = folder / "calls"
        self._process = process
        self.took = 0.0

    def facts(self) -> Facts:
        told: Facts = msgspec.convert(self.say("facts"), Facts, strict=True)
        return told

    def telemetry(self) -> Telemetry:
        told: Telemetry = msgspec.convert(self.say("telemetry"), Telemetry, strict=True)
        return told

    def advance(self, seconds: float) -> None:
        self.say(f"advance {seconds}")

    def set(self, **settings: object) -> None:
        """Changes the driver under the running process; what is not named goes back to how it started."""
        fresh = self._state.with_suffix(".new")
        fresh.write_bytes(b"".join(os.fsencode(f"{k}={v}\n") for k, v in standin.lines(**settings).items()))
        fresh.replace(self._state)

    def calls(self) -> list[str]:
        """Every "init" and "shutdown" so far."""
        return self._calls.read_text().split() if self._calls.exists() else []

    def say(self, command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process ended"
        said = msgspec.json.decode(line)
        self.took = said["took"]
        return said["answer"]


@contextmanager
def asked(
    folder: Path, devices: int = 2, *, deadline: float = 10, library: bool = True, **settings: object
) -> Iterator[Asked]:
    """A process with so many GPUs; ``library`` False: on a machine without the driver's library."""
    environment = standin.environment(devices, state_file=folder / "state", calls_file=folder / "calls", **settings)
    if not library:
        environment["LD_LIBRARY_PATH"] = str(folder)
    command = [sys.executable, "-m", "tests.nvml.report", str(deadline), str(folder)]
    with subprocess.Popen(
        command, env=environment, cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Asked(folder, process)
        finally:
            process.kill()
