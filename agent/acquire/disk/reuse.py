"""Brings files that lie on this server already into a snapshot, once their bytes are proven: by link, else by copy."""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.acquire import places
from agent.acquire.disk import digests
from agent.acquire.disk.known import Known
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Brake, Plan, PlannedFile, Tally

_FICLONE = 0x40049409  # share the blocks of another file, on file systems that can
_CANNOT_LINK = (errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


Candidates = Mapping[str, Sequence[Path]]
"""By the plan's names, where the same bytes should lie."""


def take_all(
    plan: Plan,
    candidates: Candidates,
    *,
    root: Path,
    folder: Path,
    brake: Brake,
    tally: Tally,
    still: Callable[[], None],
    copies: bool,
    known: Known | None = None,
) -> tuple[list[str], Candidates]:
    """Bring what can be brought to ``folder``; the names that came, and what is left to be copied.

    What lies there already is left: an earlier run's files are proven by the fetch. Without ``copies`` no byte is
    written, so that it takes no room. What the job has read whole is ``known``, and not read again to be linked.
    """
    taken: list[str] = []
    left: dict[str, list[Path]] = {}
    for file in plan.files:
        target = folder / file.path
        if file.path not in candidates or target.exists():
            continue
        for source in candidates[file.path]:
            brake.check()
            still()
            came = take(file, source, target, brake, tally, root=root, copies=copies, known=known)
            if came:
                taken.append(file.path)
                left.pop(file.path, None)
                break
            if came is None:
                left.setdefault(file.path, []).append(source)
    return taken, left


def take(
    file: PlannedFile,
    source: Path,
    target: Path,
    brake: Brake,
    tally: Tally,
    *,
    root: Path,
    copies: bool = True,
    known: Known | None = None,
) -> bool | None:
    """Bring ``source`` to ``target``, a path below ``root``; False where its bytes are not the planned ones.

    None where it would have to be copied, and ``copies`` forbids that. Linked where ``source`` is a read-only file that
    we published in this root, on the same mount, else copied. OSError when the root's disk refuses.
    """
    try:
        fd = _opened(source, root)
    except OSError:
        return False
    counted = _Counted(tally)
    right = known.right(file, os.fstat(fd)) if known is not None else None
    goal = str(target.relative_to(root))
    folder = goal.rpartition("/")[0]
    try:
        if right is False:
            return False
        with Tree(root) as tree:
            tree.mkdirs(folder)
            temporary = f"{folder}/.taking-{secrets.token_hex(8)}"
            try:
                taken = _link(tree, fd, file, source, temporary, brake, counted, right=right is True)
                if taken is None:
                    if not copies:
                        return None
                    counted.take_back()
                    taken = _copy(tree, fd, file, temporary, brake, counted)
                if taken:
                    if tree.stat(goal) is not None:
                        tree.unlink(goal)
                    tree.rename(temporary, goal)
                    counted.bytes = 0
                    tally.add(files=1)
                return taken
            finally:
                counted.take_back()
                if tree.stat(temporary) is not None:
                    tree.unlink(temporary)
    finally:
        os.close(fd)


def _opened(source: Path, root: Path) -> int:
    """In the root no link is followed on the way, either: what lies behind one is none of our snapshots."""
    if not source.is_relative_to(root):
        return os.open(source, _READ)
    with Tree(root) as tree:
        return tree.open(str(source.relative_to(root)))


class _Counted:
    """Bytes told to a tally as they come, which can be taken back."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.bytes = 0

    def read_on(self, count: int) -> None:
        """So many more."""
        self.bytes += count
        self._tally.add(done=count, reused=count)

    def take_back(self) -> None:
        """None of them counts."""
        self._tally.add(done=-self.bytes, reused=-self.bytes)
        self.bytes = 0


def _ours(fd: int, source: Path, root: Path) -> bool:
    """Only what nobody may write to is given a second name: a change would show in both places."""
    found = os.fstat(fd)
    return (
        source.is_relative_to(root / places.MODELS)
        and stat.S_ISREG(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & 0o222
    )


def _link(
    tree: Tree,
    fd: int,
    file: PlannedFile,
    source: Path,
    temporary: str,
    brake: Brake,
    counted: _Counted,
    *,
    right: bool,
) -> bool | None:
    """None where it is not ours or the file system does not link; what is known to be ``right`` is not read again."""
    if not _ours(fd, source, tree.root):
        return None
    try:
        tree.link(str(source.relative_to(tree.root)), temporary)
    except OSError as error:
        if error.errno in _CANNOT_LINK:
            return None
        raise
    made = tree.stat(temporary)
    if made is None or not os.path.samestat(made, os.fstat(fd)):
        return False
    if right:
        counted.read_on(file.size)
    return right or _proven(fd, file, brake, counted)


def _copy(tree: Tree, fd: int, file: PlannedFile, temporary: str, brake: Brake, counted: _Counted) -> bool:
    if not stat.S_ISREG(os.fstat(fd).st_mode) or os.fstat(fd).st_size != file.size:
        return False
    made = tree.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        if not _shared(fd, made) and not _written(fd, made, file, brake):
            return False
        # What was written is what is proven, not what was read.
        return _proven(made, file, brake, counted)
    finally:
        os.close(made)


def _shared(fd: int, made: int) -> bool:
    try:
        fcntl.ioctl(made, _FICLONE, fd)
    except OSError:
        return False
    return True


def _written(fd: int, made: int, file: PlannedFile, brake: Brake) -> bool:
    at = 0
    while at < file.size:
        brake.check()
        try:
            chunk = os.pread(fd, digests.CHUNK_BYTES, at)
        except OSError:
            return False  # the candidate cannot be read; the Hub has it still
        if not chunk:
            return False
        view = memoryview(chunk)
        while view:
            view = view[os.write(made, view) :]
        at += len(chunk)
    return True


def _proven(fd: int, file: PlannedFile, brake: Brake, counted: _Counted) -> bool:
    try:
        return digests.of(fd, file, brake=brake, read_on=counted.read_on) == file.digest
    except OSError:
        return False
