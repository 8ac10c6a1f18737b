"""Who may read what lies in a storage root: the published is for all, what is half done or going is the agent's alone.

An inference engine runs under a uid of its own. It reads a snapshot only where each folder on the way lets it pass.
"""

import os
import stat
from contextlib import suppress

from agent.acquire.disk.paths import Tree

PRIVATE = 0o700
_FOR_ALL = 0o755


def open_way(tree: Tree, path: str) -> None:
    """Let everybody pass and read the folders on the way to ``path``, that one too, below the root.

    Only those that are ours: what an operator made, or an earlier agent under another uid, is theirs to open.
    """
    names = path.split("/")
    for depth in range(1, len(names) + 1):
        _open(tree, "/".join(names[:depth]))


def open_whole(tree: Tree, path: str) -> None:
    """The same for the way to a published folder and for all folders in it."""
    open_way(tree, path)
    for folder in tree.folders(path):
        _open(tree, f"{path}/{folder}")


def make_private(tree: Tree, path: str) -> None:
    """Make a folder that nobody else looks into, with those on the way; one that lies there and is ours is closed."""
    tree.mkdirs(path, PRIVATE)
    names = path.split("/")
    for depth in range(1, len(names) + 1):
        _change(tree, "/".join(names[:depth]), but=0o777 ^ PRIVATE)


def _open(tree: Tree, path: str) -> None:
    _change(tree, path, add=_FOR_ALL)


def _change(tree: Tree, path: str, *, add: int = 0, but: int = 0) -> None:
    with tree.folder(path) as fd:
        found = os.fstat(fd)
        mode = stat.S_IMODE(found.st_mode)
        wanted = (mode | add) & ~but
        if found.st_uid == os.geteuid() and mode != wanted:
            with suppress(PermissionError):  # a file system that keeps no modes of its own
                os.fchmod(fd, wanted)
