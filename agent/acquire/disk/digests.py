"""Reads a file once and says what its bytes hash to."""

import os
from collections.abc import Callable

from agent.acquire.terms import Brake, PlannedFile

CHUNK_BYTES = 1024 * 1024


def of(fd: int, file: PlannedFile, *, brake: Brake | None = None, read_on: Callable[[int], None] | None = None) -> str:
    """The digest, of the file's own kind, of an open file's bytes from its start; ``read_on`` hears how many were read.

    A file longer or shorter than planned has no digest: "" (a git blob's would hash its size with it).
    """
    if os.fstat(fd).st_size != file.size:
        return ""
    hasher = file.hasher()
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(1, file.size))))
    at = 0
    while at < file.size:
        if brake is not None:
            brake.check()
        read = os.preadv(fd, [buffer], at)
        if not read:
            return ""
        hasher.update(buffer[:read])
        at += read
        if read_on is not None:
            read_on(read)
    return hasher.hexdigest()
