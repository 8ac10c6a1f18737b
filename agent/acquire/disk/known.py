"""Files that a job has read whole already, and whether their bytes were right: it holds until anybody touches them."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.acquire.disk import digests
from agent.acquire.terms import Brake, PlannedFile

_SETTLED_SECONDS = 2.0
"""A file that was touched shortly before it was read may be touched again without its times telling: they are as coarse
as the kernel's tick, or, on some file systems, a second."""

_Untouched = tuple[int, int, int, int, int]


@dataclass
class Known:
    """Nothing is known yet. What was right is noted of settled files only; what was wrong only costs a fetch."""

    clock: Callable[[], float] = time.time  # as the file system dates its files
    _found: dict[tuple[_Untouched, str], bool] = field(default_factory=dict)

    def right(self, file: PlannedFile, status: os.stat_result) -> bool | None:
        """Whether the file with that status holds the planned bytes; None where it was not read, or touched since."""
        return self._found.get((_untouched(status), file.digest))

    def read(
        self,
        fd: int,
        file: PlannedFile,
        *,
        brake: Brake | None = None,
        read_on: Callable[[int], None] | None = None,
    ) -> bool:
        """Read an open file and note what was found; OSError when the disk cannot."""
        began, before = self.clock(), os.fstat(fd)
        right = digests.of(fd, file, brake=brake, read_on=read_on) == file.digest
        settled = began - max(before.st_mtime, before.st_ctime) >= _SETTLED_SECONDS
        if (settled or not right) and _untouched(before) == _untouched(os.fstat(fd)):
            self._found[_untouched(before), file.digest] = right
        return right


def _untouched(status: os.stat_result) -> _Untouched:
    """The same as long as nobody wrote to the file, nor changed its name, mode or owner."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
