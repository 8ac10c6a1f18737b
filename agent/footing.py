"""Whether a folder may be a storage root at all: the way to it, what is mounted there, and on which device it lies."""

import errno
import os
import stat
from pathlib import Path

from agent import mounts, wire
from agent.acquire.disk.paths import Tree

FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class Fault(Exception):
    """A storage root is not as it was approved: which of the wire's faults, and what to do."""

    def __init__(self, fault: wire.RootFault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail


def name_below(path: str, artifact_dir: Path) -> str:
    """The root's name below the artifact volume, "" for the volume itself."""
    wanted = Path(path)
    if not wanted.is_absolute() or str(wanted) != path or ".." in wanted.parts or "\0" in path:
        raise Fault("outside_volumes", "The path must be absolute and plain: no . or .. in it, no double slash.")
    if not wanted.is_relative_to(artifact_dir):
        text = f"The path must lie in this agent's artifact volume, {artifact_dir} (MODELFORGE_AGENT_ARTIFACT_DIR)."
        raise Fault("outside_volumes", text)
    name = str(wanted.relative_to(artifact_dir))
    return "" if name == "." else name


def tree(artifact_dir: Path) -> Tree:
    """The artifact volume, wherever the operator has it; below it no link is followed."""
    try:
        return Tree(Path(os.path.realpath(artifact_dir)))
    except FileNotFoundError:
        raise Fault("missing", f"The artifact volume {artifact_dir} is not there. Mount it into the agent.") from None
    except NotADirectoryError:
        raise Fault("not_a_folder", f"The artifact volume {artifact_dir} is a file. Mount a folder there.") from None


def check_way(tree: Tree, below: str, *, must_exist: bool) -> None:
    """Raises ``Fault`` unless plain folders lead to the root."""
    names = below.split("/") if below else []
    for end in range(1, len(names) + 1):
        way = "/".join(names[:end])
        found = tree.stat(way)
        if found is None:
            if must_exist:
                raise Fault("missing", f"There is no folder {way} in the artifact volume. Make it, or mount it there.")
            return
        if stat.S_ISLNK(found.st_mode):
            raise Fault("a_link", f"{way} is a symbolic link, which may point elsewhere later. Name the folder itself.")
        if not stat.S_ISDIR(found.st_mode):
            raise Fault("not_a_folder", f"{way} is no folder. Move it away, or name another path.")


def check_mount(mount: mounts.Mount | None, path: str, *, ephemeral_ok: bool, root: Path) -> None:
    """Raises ``Fault`` where what the folder lies on is no place for models."""
    if mount is not None and mount.filesystem.partition(".")[0] == "fuse":
        text = (
            f"It lies on a FUSE share ({mount.filesystem} at {mount.point}), which lies about locks, links and space. "
            "Map a disk's or pool's own path (Unraid: /mnt/cache/... or /mnt/disk1/..., not /mnt/user/...)."
        )
        raise Fault("fuse", text)
    if not ephemeral_ok and mounts.ephemeral(Path(path), root):
        text = "Nothing is mounted there: what is written would die with the container. Map a folder of the host to it."
        raise Fault("not_mounted", text)


def check_device(order: wire.RootOrder, device_id: str, fsid: str) -> None:
    """Raises ``Fault`` where device and file system id both changed: either alone may do so with a restart."""
    if not order.device_id or device_id == order.device_id or (order.fsid and fsid == order.fsid):
        return
    text = (
        f"It lies on another device ({device_id}) than the one that was approved ({order.device_id}). Mount the "
        "right disk; or, if the disk was replaced on purpose, approve the root again."
    )
    raise Fault("device_changed", text)


def fault_of(error: OSError) -> Fault:
    """What a refusal of the operating system means for the root."""
    name = errno.errorcode.get(error.errno or 0, "error")
    if error.errno in (*_DENIED, *FULL):
        uid, gid = os.geteuid(), os.getegid()
        remedy = f"Let uid {uid} (gid {gid}) write there, or mount it writable."
        if error.errno in FULL:
            remedy = "Free some space there."
        return Fault("not_writable", f"{error.strerror} ({name}). {remedy}")
    return Fault("error", f"{error.strerror or type(error).__name__} ({name}). Look at the disk or file server.")
