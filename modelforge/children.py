"""Child processes that end when their parent does, whatever ends it, and that are started again when they die."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
KEPT_LOG_BYTES = 10 * 1024 * 1024
DEATHS = 5
"""So many within ``WITHIN`` seconds, and a child is not started again."""
WITHIN = 60.0


def dies_with_parent(with_signal: int = signal.SIGTERM) -> Callable[[], None]:
    """A ``preexec_fn``: on Linux the kernel sends the child ``with_signal`` when the thread that started it ends."""
    parent = os.getpid()

    def prepare() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, with_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os.kill(os.getpid(), with_signal)

    return prepare


def end(process: subprocess.Popen[bytes], *, with_signal: int = signal.SIGTERM, patience: float = 10) -> int:
    """Ask a child to end, insist after ``patience`` seconds; its exit code. The child leads its own process group."""
    if process.poll() is None:
        process.send_signal(with_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    _kill_group(process)
    return process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what the child left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(slots=True)
class Child:
    """One long-running process, in a process group of its own, its output in a log file."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    _deaths: list[float] = field(default_factory=list)

    def start(self) -> None:
        """Start it."""
        if self.log.exists() and self.log.stat().st_size > KEPT_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=dies_with_parent(),
            )

    @property
    def died(self) -> int | None:
        """The exit code of one that ended, else None."""
        return self.process.poll() if self.process else None

    def start_again(self) -> bool:
        """Start it once more, unless it keeps dying."""
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < WITHIN] + [now]
        if self.process is not None:
            _kill_group(self.process)
        if len(self._deaths) >= DEATHS:
            return False
        self.start()
        return True

    def stop(self) -> None:
        """End it and all that it started."""
        if self.process is not None:
            end(self.process)
