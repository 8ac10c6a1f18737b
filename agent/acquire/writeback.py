"""Asks the kernel to begin writing to the disk what lies in its cache, so that flushing a file in the end is quick."""

import ctypes

_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begin, and do not wait

_libc = ctypes.CDLL(None, use_errno=True)


def begin(fd: int, offset: int, count: int) -> None:
    """Begin with these bytes of a file. It promises nothing, and a file system that cannot is no fault."""
    call = getattr(_libc, "sync_file_range", None)
    if call is not None:
        call(fd, ctypes.c_int64(offset), ctypes.c_int64(count), _WRITE)
