"""Whether a folder outlives the container: what the kernel says about mounts and about being in a container."""

import os
from dataclasses import dataclass
from pathlib import Path

_VOLATILE = frozenset({"overlay", "aufs", "tmpfs", "ramfs", "fuse.fuse-overlayfs", "fuse-overlayfs"})
_CONTAINER_WORDS = ("docker", "kubepods", "containerd", "libpod", "lxc")


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    point: Path
    inner_root: str  # which folder of the file system is mounted; "/" for a whole disk
    filesystem: str
    source: str
    options: frozenset[str] = frozenset()  # of the file system; a version 1 cgroup names its controllers here


def in_container(root: Path = Path("/")) -> bool:
    """Whether this process runs in a container, by the marks that engines leave."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    try:
        groups = (root / "proc/1/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(word in groups for word in _CONTAINER_WORDS)


def table(root: Path = Path("/")) -> list[Mount]:
    """Every mount that this process sees, a later one covering an earlier one at the same place.

    Raises OSError where the kernel does not say.
    """
    mounts = []
    for line in (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        left, _, right = line.partition(" - ")
        mine, theirs = left.split(" "), right.split(" ")
        if len(mine) >= 5 and len(theirs) >= 2:
            options = frozenset(theirs[2].split(",")) if len(theirs) > 2 else frozenset[str]()
            mounts.append(Mount(Path(_unescape(mine[4])), _unescape(mine[3]), theirs[0], _unescape(theirs[1]), options))
    return mounts


def covering(path: Path, root: Path = Path("/")) -> Mount | None:
    """The mount that ``path`` lies on, or None where the kernel does not say."""
    try:
        mounts = table(root)
    except OSError:
        return None
    wanted = Path(os.path.realpath(path))
    best: Mount | None = None
    for mount in mounts:
        if wanted.is_relative_to(mount.point) and (best is None or mount.point.is_relative_to(best.point)):
            best = mount
    return best


def ephemeral(path: Path, root: Path = Path("/")) -> bool:
    """Whether what is written to ``path`` dies with the container: no volume is mounted there.

    Outside a container every folder is fine. In one, memory and overlay file systems are volatile, and so is anything
    on the container's own root, unless that is a whole disk (a machine booted from a container image).
    """
    mount = covering(path, root) if in_container(root) else None
    if mount is None:
        return False
    if mount.filesystem in _VOLATILE:
        return True
    whole_disk = mount.inner_root == "/" and mount.source.startswith("/dev/") and "/docker-" not in mount.source
    return mount.point == Path("/") and not whole_disk


def holds_a_system(path: Path) -> bool:
    """Whether ``path`` looks like the root of a whole system, such as a host's ``/`` mounted there."""
    return all(os.path.isdir(path / name) for name in ("dev", "etc", "proc", "sys"))


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
