"""A job's partial folder: bytes that are on their way, what is known about them, and the files that are whole.

::

    parts/<n>.part     bytes of the plan's nth file, with holes
    parts/<n>.json     what is known about them; replaced whole, so that a crash leaves the old or the new
    snapshot/<path>    verified files under their names
"""

import contextlib
import errno
import os
import re
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from agent.acquire.disk.paths import Tree
from agent.acquire.fetching.segments import Span
from agent.acquire.places import SNAPSHOT
from agent.acquire.terms import Plan, PlannedFile

PARTS = "parts"
_MAX_SIDECAR_BYTES = 4 * 1024 * 1024
_NAME = re.compile(r"(\d{1,9})\.(?:part|json)")
_CREATE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_OURS = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES)
"""A link, a folder, a socket, a device, somebody else's file: what stands there is no part of ours."""


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about bytes in a ``.part`` file. It only saves work: the digest of the whole decides."""

    plan: str
    path: str
    size: int
    digest: str
    etag: str = ""
    spans: list[Span] = []  # of the file, that were written


class Shelf:
    """The folder, every name in it opened below it and never through a link."""

    def __init__(self, partial: Path, plan: Plan) -> None:
        self._plan = plan
        self.root = partial
        self._digest = plan.digest
        self._made = {SNAPSHOT}
        self._tree = Tree(partial)
        try:
            self._tree.mkdirs(PARTS, 0o700)
            self._tree.mkdirs(SNAPSHOT)
            with self._tree.folder(PARTS) as parts:
                self._parts = os.dup(parts)
        except OSError:
            self._tree.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        parts, self._parts = self._parts, -1  # a thread that comes back late must not meet whoever has the number next
        os.close(parts)
        self._tree.close()

    def sweep(self) -> None:
        """Take away what is none of the plan's: nothing unproven may be published along with it."""
        planned = {file.path for file in self._plan.files}
        for path, found in list(self._tree.files(SNAPSHOT)):
            if path not in planned or not stat.S_ISREG(found.st_mode):
                self._tree.unlink(f"{SNAPSHOT}/{path}")
        for name in os.listdir(self._parts):
            known = _NAME.fullmatch(name)
            if known is None or int(known[1]) >= len(self._plan.files):
                self._remove(name)

    def open_whole(self, file: PlannedFile) -> int | None:
        """A file that an earlier run left as whole, if it has the right size; anything else there is taken away."""
        path = f"{SNAPSHOT}/{file.path}"
        if (found := self._tree.stat(path)) is None:
            return None
        if stat.S_ISREG(found.st_mode) and found.st_size == file.size:
            return self._tree.open(path)
        self.drop_whole(file)
        return None

    def drop_whole(self, file: PlannedFile) -> None:
        """What lies under the file's name is not the file."""
        self._tree.unlink(f"{SNAPSHOT}/{file.path}")

    def open_part(self, number: int) -> int:
        """The bytes so far, to read and write; a new empty file where there are none."""
        name = f"{number}.part"
        try:
            fd = os.open(name, os.O_RDWR | _CREATE | os.O_NONBLOCK, 0o600, dir_fd=self._parts)
        except OSError as error:
            if error.errno not in _NOT_OURS:  # a full or failing disk says nothing about the bytes that are there
                raise
            self._remove(name)
            fd = os.open(name, os.O_RDWR | os.O_EXCL | _CREATE, 0o600, dir_fd=self._parts)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return fd
        os.close(fd)
        self._remove(name)
        return os.open(name, os.O_RDWR | os.O_EXCL | _CREATE, 0o600, dir_fd=self._parts)

    def known(self, number: int, fd: int) -> Sidecar | None:
        """What an earlier run noted about the part, if it is of this very plan and the bytes can be there."""
        file = self._plan.files[number]
        try:
            sidecar_fd = os.open(
                f"{number}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self._parts
            )
        except OSError:
            return None
        try:
            with os.fdopen(sidecar_fd, "rb") as stream:
                found = msgspec.json.decode(stream.read(_MAX_SIDECAR_BYTES), type=Sidecar)
        except (OSError, msgspec.MsgspecError, ValueError):
            return None
        meant = (found.plan, found.path, found.size, found.digest)
        if meant != (self._digest, file.path, file.size, file.digest):
            return None
        on_disk = os.fstat(fd).st_size
        if on_disk > file.size or any(not 0 <= first < end <= on_disk for first, end in found.spans):
            return None
        return found

    def note(self, number: int, etag: str, spans: list[Span]) -> None:
        """Write down what was written."""
        file = self._plan.files[number]
        said = Sidecar(plan=self._digest, path=file.path, size=file.size, digest=file.digest, etag=etag, spans=spans)
        name = f"{number}.json"
        fresh = f"{name}.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_TRUNC | _CREATE, 0o600, dir_fd=self._parts)
        with os.fdopen(fd, "wb") as stream:
            stream.write(msgspec.json.encode(said))
        os.rename(fresh, name, src_dir_fd=self._parts, dst_dir_fd=self._parts)

    def forget(self, number: int) -> None:
        """Take a part's note away."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{number}.json", dir_fd=self._parts)

    def drop_part(self, number: int) -> None:
        """Take a part away."""
        self.forget(number)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{number}.part", dir_fd=self._parts)

    def part_path(self, number: int) -> Path:
        """Where a part lies, for who takes it elsewhere."""
        return self.root / PARTS / f"{number}.part"

    def keep(self, number: int) -> None:
        """A part is proven: give it its name in the snapshot."""
        path = f"{SNAPSHOT}/{self._plan.files[number].path}"
        folder = path.rpartition("/")[0]
        if folder not in self._made:
            self._tree.mkdirs(folder)
            self._made.add(folder)
        self._tree.rename(f"{PARTS}/{number}.part", path)
        self.forget(number)

    def _remove(self, name: str) -> None:
        found = os.stat(name, dir_fd=self._parts, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=self._parts)
        else:
            os.unlink(name, dir_fd=self._parts)
