"""A folder and what lies below it, reached name by name without ever following a symbolic link or leaving it."""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.acquire.disk import held
from agent.acquire.disk.held import FOLDER as _FOLDER
from agent.acquire.disk.held import descent as _descend

_NOREPLACE = 1
_NO_RENAMEAT2 = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)  # an old kernel; a file system that lacks the flag

_libc = ctypes.CDLL(None, use_errno=True)


def parts(path: str) -> list[str]:
    """The names on the way to ``path``; ValueError for everything that is no plain relative path."""
    names = path.split("/")
    if not path or any(name in ("", ".", "..") or "\0" in name for name in names):
        raise ValueError(f"not a plain relative path: {path!r}")
    return names


class Tree:
    """Everything below a root. Paths are relative; each folder on the way is opened by its name below the one before.

    OSError tells what is wrong: ELOOP or ENOTDIR where a link stands in the way, FileNotFoundError where nothing does.
    Within the storage root that a job holds, it is that of the held one, wherever the path leads by now.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fd = held.opened(root)

    def close(self) -> None:
        """Let go of the root."""
        fd, self.fd = self.fd, -1
        os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A descriptor of that folder; "" is the root itself."""
        with _descend(self.fd, parts(path) if path else []) as fd:
            yield fd

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        *way, name = parts(path)
        with _descend(self.fd, way) as fd:
            yield fd, name

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """A descriptor of a regular file; the caller closes it. Anything else at that name is an OSError."""
        with self._parent(path) as (folder, name):
            fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return fd

    def stat(self, path: str) -> os.stat_result | None:
        """What stands at that name, a link itself and not what it names; None for nothing."""
        try:
            with self._parent(path) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self, path: str) -> list[str]:
        """What a folder holds, in order; nothing where there is no such folder."""
        try:
            with self.folder(path) as fd:
                return sorted(os.listdir(fd))
        except FileNotFoundError:
            return []

    def files(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """All that is no folder below ``path``, by its name below ``path``."""
        with self.folder(path) as fd:
            yield from _files(fd, "")

    def folders(self, path: str) -> Iterator[str]:
        """All folders below ``path``, by their names below ``path``, the inner ones before those they lie in."""
        with self.folder(path) as fd:
            yield from _folders(fd, "")

    def mkdirs(self, path: str, mode: int = 0o755) -> None:
        """Make a folder and those on the way, each flushed into the one above; ``mode`` whatever the umask says."""
        made = self.fd
        opened: list[int] = []
        try:
            for name in parts(path) if path else []:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=made)
                    os.chmod(name, mode, dir_fd=made)
                    os.fsync(made)
                made = os.open(name, _FOLDER, dir_fd=made)
                opened.append(made)
        finally:
            for fd in opened:
                os.close(fd)

    def read(self, path: str, most: int) -> bytes:
        """A whole small file; OSError (EFBIG) when it is larger than ``most``."""
        with os.fdopen(self.open(path), "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise OSError(errno.EFBIG, f"larger than {most} bytes", path)
        return content

    def write(self, path: str, content: bytes, mode: int = 0o444) -> None:
        """A new file, flushed; one that stands there is replaced, a link by that name too."""
        with self._parent(path) as (folder, name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())

    def unlink(self, path: str) -> None:
        """Take one name away; a link itself, never what it names."""
        with self._parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def rmdir(self, path: str) -> None:
        """Take an empty folder away."""
        with self._parent(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def link(self, source: str, target: str) -> None:
        """A second name for a file."""
        with self._parent(source) as (there, old), self._parent(target) as (here, new):
            os.link(old, new, src_dir_fd=there, dst_dir_fd=here, follow_symlinks=False)

    def rename(self, source: str, target: str) -> None:
        """Move within the root; FileExistsError where anything stands at ``target``, an empty folder too."""
        with self._parent(source) as (there, old), self._parent(target) as (here, new):
            rename_new(there, old, here, new)

    def sync(self, path: str) -> None:
        """Make the names in a folder outlive a power cut."""
        with self.folder(path) as fd:
            os.fsync(fd)

    def flush(self) -> None:
        """Make everything on the root's file system outlive a power cut: one call for thousands of files."""
        if _libc.syncfs(self.fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


def rename_new(there: int, old: str, here: int, new: str) -> None:
    """Rename only where nothing stands at the new name.

    A plain rename replaces an empty folder in silence. Where the file system cannot refuse by itself, we look first:
    the folder is ours, and one job at a time writes to it.
    """
    code = _renameat2(there, old, here, new)
    if code == 0:
        return
    if code not in _NO_RENAMEAT2:
        raise OSError(code, os.strerror(code), new)  # OSError becomes FileExistsError by its number
    try:
        os.stat(new, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=there, dst_dir_fd=here)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def _renameat2(there: int, old: str, here: int, new: str) -> int:
    call = getattr(_libc, "renameat2", None)  # a C library may be older than its kernel
    if call is None:
        return errno.ENOSYS
    done = call(there, os.fsencode(old), here, os.fsencode(new), _NOREPLACE)
    return 0 if done == 0 else ctypes.get_errno()


def _folders(fd: int, below: str) -> Iterator[str]:
    with os.scandir(fd) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        inner = os.open(name, _FOLDER, dir_fd=fd)
        try:
            yield from _folders(inner, f"{below}{name}/")
        finally:
            os.close(inner)
        yield below + name


def _files(fd: int, below: str) -> Iterator[tuple[str, os.stat_result]]:
    for name in sorted(os.listdir(fd)):
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            yield below + name, found
            continue
        inner = os.open(name, _FOLDER, dir_fd=fd)
        try:
            yield from _files(inner, f"{below}{name}/")
        finally:
            os.close(inner)
