"""The file that marks a folder as one storage root of one node: what it says, and whether it says the right thing."""

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agent.acquire.disk.paths import Tree
from agent.acquire.places import MARKER
from agent.footing import Fault

MODE = 0o444
_NEW = f"{MARKER}.new"
_MAX_BYTES = 4096
_NO_MARKER = (errno.ENOENT, errno.EFBIG, errno.ELOOP, errno.EINVAL)  # nothing, or what no marker of ours can be


@dataclass(frozen=True)
class Marked:
    """What a marker says."""

    root_id: str
    node_id: str


def read(tree: Tree, folder: str) -> Marked | None:
    """The marker in a folder of the tree; None where there is none, or what is there says nothing."""
    try:
        said = json.loads(tree.read(within(folder, MARKER), _MAX_BYTES))
        return Marked(str(UUID(said["root_id"])), str(UUID(said["node_id"])))
    except OSError as error:
        if error.errno in _NO_MARKER:
            return None
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # damaged: as good as none
        return None


def check(tree: Tree, folder: str, *, root_id: UUID, node_id: UUID) -> None:
    """Raises ``Fault`` unless the folder carries this root's marker, written by this node."""
    found = read(tree, folder)
    if found is None:
        text = (
            f"There is no marker ({MARKER}) in it: it is not the folder that was approved, or its disk is not mounted "
            "there. Mount the disk; or, if this is the right folder, approve the root again."
        )
        raise Fault("marker_missing", text)
    if found != Marked(str(root_id), str(node_id)):
        raise Fault("marker_foreign", _foreign(found))


def take(
    tree: Tree, folder: str, *, root_id: UUID, node_id: UUID, now: datetime, replaces: Sequence[UUID] = ()
) -> None:
    """Mark the folder as this root of this node.

    ``Fault`` where it carries the marker of another root, unless this node wrote it for one that ``replaces`` names.
    """
    found = read(tree, folder)
    if found is not None and found.root_id != str(root_id):
        over = {Marked(str(root), str(node_id)) for root in replaces}
        if found not in over:
            raise Fault("marker_foreign", _foreign(found))
    said = {"root_id": str(root_id), "node_id": str(node_id), "approved_at": now.isoformat(timespec="seconds")}
    tree.write(within(folder, _NEW), (json.dumps(said) + "\n").encode(), MODE)
    with tree.folder(folder) as fd:
        os.rename(_NEW, MARKER, src_dir_fd=fd, dst_dir_fd=fd)
        os.fsync(fd)


def within(folder: str, name: str) -> str:
    """The name below a folder of the tree; "" is the tree's own."""
    return f"{folder}/{name}" if folder else name


def _foreign(found: Marked) -> str:
    return (
        f"It carries the marker of storage root {found.root_id} of node {found.node_id}. Use another folder; or, if "
        f"that root is no more, look at what lies there, remove the file {MARKER}, and approve this root again."
    )
