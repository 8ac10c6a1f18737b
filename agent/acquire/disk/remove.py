"""Deletes what shall no longer lie in a root: snapshots, unpublished by one rename first, and half-done jobs."""

import errno
import logging
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from agent import wire
from agent.acquire import places
from agent.acquire.disk import access
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Brake, Failed, Stopped

log = logging.getLogger(__name__)

_HALF_DONE = ".partial"  # ends the names of those below .removed/; the others were published
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(order: wire.RemoveOrder, *, root: Path, job_id: UUID, brake: Brake) -> None:
    """Unpublish the snapshot, then delete it; done already is done. ``Failed`` where a link stands in the way."""
    snapshot, aside = places.published(order), places.removed(job_id)
    with places.writing(root, "removing the snapshot"), Tree(root) as tree:
        brake.check()
        found = tree.stat(snapshot)
        if found is not None:
            if not stat.S_ISDIR(found.st_mode):
                raise Failed("storage_error", f"{snapshot} is a link or a file, not a snapshot; it was left alone.")
            set_aside(tree, snapshot, aside)
            _drop_empty(tree, snapshot)
        drop(tree, aside, brake)


def finish_removals(root: Path, brake: Brake | None = None) -> None:
    """Delete what a removal that was broken off had unpublished already; what cannot be deleted holds up nobody else.

    Such as a file that a runtime still has open on NFS, or a disk that is mounted in there.
    """
    with places.writing(root, "finishing an earlier removal"), Tree(root) as tree:
        for name in tree.names(places.REMOVED):
            try:
                drop(tree, f"{places.REMOVED}/{name}", brake)
            except OSError as error:
                log.warning("what was removed earlier is not deleted yet: %s", error.strerror, extra={"removed": name})


def partials(root: Path, *, untouched_since: datetime | None = None) -> list[UUID]:
    """The jobs whose half-done files lie here; only those that nothing was written to since then, if that is given."""
    found = []
    with places.writing(root, "looking for half-done files"), Tree(root) as tree:
        for name in tree.names(places.PARTIAL):
            job_id = _uuid(name)
            if job_id is not None and (untouched_since is None or _touched(tree, job_id) < untouched_since):
                found.append(job_id)
    return found


def forget(root: Path, job_ids: Iterable[UUID]) -> None:
    """Delete the half-done files of these jobs, whole or not at all as far as a later attempt can see."""
    with places.writing(root, "deleting half-done files"), Tree(root) as tree:
        for job_id in job_ids:
            if tree.stat(places.partial(job_id)) is not None:
                aside = f"{places.removed(job_id)}{_HALF_DONE}"
                set_aside(tree, places.partial(job_id), aside)
                drop(tree, aside)


def tidy(root: Path, job_ids: Iterable[UUID]) -> None:
    """Forget these jobs, and finish what an earlier process began to.

    What cannot be deleted holds up nothing else, and lies aside until it can be; ``Failed`` tells of one such.
    """
    refused = []
    for job_id in job_ids:
        try:
            forget(root, [job_id])
        except Failed as failed:
            refused.append(failed)
    for aside in being_deleted(root):
        try:
            with places.writing(root, f"deleting {aside}"), Tree(root) as tree:
                drop(tree, aside)
        except Failed as failed:
            refused.append(failed)
    if refused:
        raise refused[-1]  # those aside say where they lie


def being_deleted(root: Path) -> list[str]:
    """Half-done files that are on no list any more, and take their room still: being deleted, or left in the middle."""
    with places.writing(root, "looking for what is being deleted"), Tree(root) as tree:
        return [f"{places.REMOVED}/{name}" for name in tree.names(places.REMOVED) if name.endswith(_HALF_DONE)]


def set_aside(tree: Tree, path: str, aside: str) -> None:
    """One rename, and nobody finds it any more."""
    access.make_private(tree, places.REMOVED)
    drop(tree, aside)
    tree.rename(path, aside)
    tree.sync(places.REMOVED)
    tree.sync(path.rpartition("/")[0])


def _drop_empty(tree: Tree, snapshot: str) -> None:
    """The folders of the repository and of its organisation, where nothing else lies in them."""
    folder = snapshot.rpartition("/")[0]
    while folder != places.MODELS:
        try:
            tree.rmdir(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        folder = folder.rpartition("/")[0]
        tree.sync(folder)


def drop(tree: Tree, path: str, brake: Brake | None = None) -> None:
    """Delete a folder and all in it: links as links, and nothing that is mounted there.

    Another thread may be at it as well, finishing what was broken off: what is gone already is done.
    """
    found = tree.stat(path)
    if found is None:
        return
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(found.st_mode):
            with tree.folder(path) as fd:
                _empty(fd, mount_of(fd), brake)
            tree.rmdir(path)
        else:
            tree.unlink(path)
    tree.sync(path.rpartition("/")[0])


def _empty(fd: int, mount: str, brake: Brake | None) -> None:
    for name in os.listdir(fd):
        _may_go_on(brake)
        with suppress(FileNotFoundError):
            _delete(fd, name, mount, brake)


def _delete(fd: int, name: str, mount: str, brake: Brake | None) -> None:
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=fd)
        return
    inner = os.open(name, _FOLDER, dir_fd=fd)
    try:
        if mount_of(inner) != mount:
            raise OSError(errno.EXDEV, "another disk or folder is mounted there", name)
        _empty(inner, mount, brake)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=fd)


def _may_go_on(brake: Brake | None) -> None:
    """What is unpublished cannot be brought back: a cancellation comes too late, all else is finished another time."""
    if brake is None:
        return
    try:
        brake.check()
    except Stopped as stopped:
        if stopped.why != "cancelled":
            raise


def mount_of(fd: int) -> str:
    """Which mount a folder belongs to: a folder bound from the same disk has the same device, but another mount."""
    with suppress(OSError):
        for line in Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines():
            if line.startswith("mnt_id:"):
                return line.partition(":")[2].strip()
    return f"device {os.fstat(fd).st_dev}"


def _uuid(name: str) -> UUID | None:
    try:
        found = UUID(name)
    except ValueError:
        return None
    return found if str(found) == name else None


def _touched(tree: Tree, job_id: UUID) -> datetime:
    """When anything was last written there."""
    path = places.partial(job_id)
    own = tree.stat(path)
    times = [own.st_mtime] if own is not None else [0.0]
    if own is not None and stat.S_ISDIR(own.st_mode):
        times += [found.st_mtime for _, found in tree.files(path)]
    return datetime.fromtimestamp(max(times), UTC)
