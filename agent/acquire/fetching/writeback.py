"""Has the disk begin with what lies in the kernel cache while more comes, so that flushing in the end is quick.

It promises nothing; a file system that cannot is no fault. A thread of its own asks, since a busy disk lets it wait.
"""

import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue

_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begin, and do not wait for the end

_libc = ctypes.CDLL(None, use_errno=True)


def begin(fd: int, offset: int, count: int) -> None:
    """Begin with these bytes of a file."""
    call = getattr(_libc, "sync_file_range", None)
    if call is not None:
        call(fd, ctypes.c_int64(offset), ctypes.c_int64(count), _WRITE)


class Writeback:
    """The thread that asks, one request after the other."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def soon(self, request: Callable[[], None]) -> None:
        """Do this when the ones before are done."""
        self._requests.put(request)

    def start(self) -> None:
        """Until ``stop``."""
        threading.Thread(target=self._run, name="fetch-writeback", daemon=True).start()

    def stop(self) -> None:
        """What is not begun by now is flushed with the file."""
        while not self._requests.empty():
            self._requests.get()
        self._requests.put(None)

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            request()
