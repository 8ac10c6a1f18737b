"""Hashes files in order while their bytes arrive in any order; the whole of a file is what its digest proves."""

import os
import threading
from collections.abc import Callable

from agent.acquire.terms import PlannedFile


class InOrder:
    """The hash of one file. Bytes that are next in order are taken as they land, others read again from the disk's
    cache; several threads may offer."""

    def __init__(self, file: PlannedFile) -> None:
        self._hash = file.hasher()
        self._size = file.size
        self._expected = file.digest
        self._lock = threading.Lock()
        self.position = 0  # all bytes before it are hashed

    @property
    def whole(self) -> bool:
        """Whether every byte went in."""
        return self.position == self._size

    @property
    def hex(self) -> str:
        """The digest of what went in."""
        return self._hash.hexdigest()

    @property
    def right(self) -> bool:
        """Whether the whole file is what the plan says."""
        return self.whole and self.hex == self._expected

    def feed(self, offset: int, view: memoryview) -> bool:
        """Take bytes that just landed, if they are next and nobody else is at it."""
        if offset != self.position or not self._lock.acquire(blocking=False):
            return False
        try:
            if offset != self.position:
                return False
            self._hash.update(view)
            self.position += len(view)
            return True
        finally:
            self._lock.release()

    def catch_up(self, fd: int, until: int, buffer: memoryview, check: Callable[[], None]) -> None:
        """Read on from where the hash stands, to ``until``; EOFError when the file ends before."""
        while self.position < until:
            check()
            with self._lock:
                wanted = buffer[: min(len(buffer), until - self.position)]
                if not wanted:
                    return
                count = os.preadv(fd, [wanted], self.position)
                if count == 0:
                    raise EOFError
                self._hash.update(wanted[:count])
                self.position += count
