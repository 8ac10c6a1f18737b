"""Which paths may be storage roots: absolute, plain, below the agent's artifact volume, apart from all other roots."""

import posixpath
from collections.abc import Iterable
from typing import Any

from agent.wire import FieldError

MAX_PATH = 4096  # bytes, as the kernel counts
MAX_ROOT = 1024
"""Of a root in its agent's environment: a snapshot's path, and what lies in it, come on top."""
MAX_NAME = 255

_UNRAID = "Register the pool or disk itself, such as /mnt/cache/..., and mount that into the agent's container."
USER_SHARES = ("/mnt/user", "/mnt/user0")
"""Unraid's merged view of its disks: a FUSE share (``shfs``)."""


def fault(path: Any, field: str) -> FieldError | None:
    """What is wrong with the path by itself, or None."""
    why = _why(path)
    return FieldError(field=field, detail=why) if why else None


def _why(path: Any) -> str:
    if not isinstance(path, str) or not path:
        return "Give an absolute path, such as /data/artifacts/models."
    if not path.isprintable():
        return "The path holds a control character or one that cannot be seen; give it in plain characters."
    if not path.startswith("/"):
        return "Give an absolute path, one that begins with /."
    if ".." in path.split("/"):
        return "Give the path without '..'."
    if path == "/":
        return "The root of the file system is no folder for models; give one of its own."
    plain = posixpath.normpath("/" + path.strip("/"))
    if plain != path:
        return f"Give the path in its plain form: {plain}"
    if len(path.encode()) > MAX_PATH or any(len(name.encode()) > MAX_NAME for name in path.split("/")):
        return f"A path has at most {MAX_PATH} bytes, and each folder's name at most {MAX_NAME}."
    return ""


def root_fault(path: Any, field: str = "container_path") -> FieldError | None:
    """What is wrong with a root's path in its agent's environment by itself, or None."""
    found = fault(path, field)
    if found is None and len(path.encode()) > MAX_ROOT:
        detail = f"A storage root's path has at most {MAX_ROOT} bytes, so that the paths of models below it fit, too."
        return FieldError(field=field, detail=detail)
    return found


def host_fault(path: Any, field: str = "host_path") -> FieldError | None:
    """What is wrong with a path of the server, or None: a FUSE share lies about locks, links and space."""
    found = fault(path, field)
    if found is None and any(is_within(path, share) for share in USER_SHARES):
        return FieldError(field=field, detail=f"{path} is on Unraid's user share, which is no disk. {_UNRAID}")
    return found


def volume_fault(path: str, volume: str, filesystem: str, field: str = "container_path") -> FieldError | None:
    """What is wrong with a path as seen from the agent's artifact volume, or None."""
    if path == volume or not is_within(path, volume):
        detail = f"Give a folder below the agent's artifact volume, {volume}, such as {volume.rstrip('/')}/models."
        return FieldError(field=field, detail=detail)
    if is_fuse(filesystem):
        detail = f"The agent's artifact volume {volume} is a FUSE share ({filesystem}): it lies about locks, links and "
        return FieldError(field=field, detail=f"{detail}space. {_UNRAID} Never /mnt/user.")
    return None


def overlap(path: str, others: Iterable[str], field: str) -> FieldError | None:
    """The first of the other roots that is this folder, or lies above or below it; or None."""
    for other in others:
        if is_within(path, other) or is_within(other, path):
            how = "is the same folder as" if path == other else "lies in" if is_within(path, other) else "contains"
            return FieldError(field=field, detail=f"{path} {how} the storage root {other}. Choose one apart from it.")
    return None


def is_within(path: str, folder: str) -> bool:
    """Whether the path is the folder or lies below it; both plain."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_fuse(filesystem: str) -> bool:
    """Whether the kernel names a FUSE file system so: ``fuse``, ``fuse.shfs``, ``fuseblk``."""
    return filesystem.startswith("fuse")
