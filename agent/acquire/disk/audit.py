"""Reads every byte of a published snapshot again, and says which files are not what they were."""

import errno
import os
from pathlib import Path

import msgspec

from agent import wire
from agent.acquire import places
from agent.acquire.disk import manifest
from agent.acquire.disk.known import Known
from agent.acquire.disk.manifest import Manifest
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Brake, PlannedFile, Tally

_MOST_TOLD = 100
_DAMAGED = (
    *(errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.EFBIG),
    *(errno.EIO, errno.EUCLEAN),
)
"""Gone, replaced by a link, a folder, a socket or something far larger; or the disk cannot read it any more."""


def verify(order: wire.VerifyOrder, *, root: Path, brake: Brake, tally: Tally) -> wire.Verified:
    """Re-hash what the manifest lists. What else lies there is no damage: a runtime may have left it."""
    snapshot = places.published(order)
    tally.phase, tally.commit = "verify", order.commit
    with places.writing(root, "reading the snapshot again"), Tree(root) as tree:
        if not tree.names(snapshot):
            return wire.Verified(files=0, bytes=0, missing=True)
        listed = _manifest(tree, snapshot, order)
        if isinstance(listed, str):
            return wire.Verified(files=0, bytes=0, damaged=[listed])
        tally.bytes_total, tally.files_total = listed.bytes, len(listed.files)
        damaged = []
        for entry in listed.files:
            brake.check()
            if not intact(tree, f"{snapshot}/{entry.path}", entry.planned, brake=brake, tally=tally):
                damaged.append(entry.path)
            tally.add(files=1)
    return wire.Verified(files=len(listed.files), bytes=listed.bytes, damaged=damaged[:_MOST_TOLD])


def intact(
    tree: Tree,
    path: str,
    file: PlannedFile,
    *,
    brake: Brake | None = None,
    tally: Tally | None = None,
    known: Known | None = None,
) -> bool:
    """Whether the planned bytes lie at that path below the root, read whole; ``tally`` counts what was read, ``known``
    notes what was found."""

    def read_on(count: int) -> None:
        if tally is not None:
            tally.add(done=count)

    try:
        fd = tree.open(path)
    except OSError as error:
        only_damage(error)
        return False
    try:
        return (known or Known()).read(fd, file, brake=brake, read_on=read_on)
    except OSError as error:
        only_damage(error)
        return False
    finally:
        os.close(fd)


def only_damage(error: OSError) -> None:
    """Raises the error, but for a file that is damaged: a disk that refuses otherwise says nothing about the file."""
    if error.errno not in _DAMAGED:
        raise error


def _manifest(tree: Tree, snapshot: str, order: wire.VerifyOrder) -> Manifest | str:
    """The manifest, or the name of the one that cannot be believed: it lists what every other file must be."""
    try:
        listed, called, digest = manifest.read(tree, snapshot)
    except (ValueError, msgspec.MsgspecError):
        return manifest.NAME
    except OSError as error:
        only_damage(error)
        return manifest.NAME
    if order.manifest_sha256 not in ("", digest) or (listed.repo_id, listed.commit) != (order.repo_id, order.commit):
        return called
    return listed
