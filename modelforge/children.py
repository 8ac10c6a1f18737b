"""Child processes that end when their parent does, whatever ends it."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


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
