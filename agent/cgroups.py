"""What the container's limits leave of the host's processors and memory, by the tightest cgroup on the way up."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent import mounts

_UNLIMITED_V1 = 2**62  # version 1 writes "no limit" as the largest number of pages there is


@dataclass(frozen=True)
class MemoryLimit:
    """A memory limit and the group that sets it."""

    limit_bytes: int
    folder: Path
    version: int

    def used_bytes(self) -> int:
        """What the group uses; the page cache that the kernel gives back at need is left out, as `docker stats` does.

        Raises OSError or ValueError where the kernel does not say.
        """
        current = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        cache = "inactive_file" if self.version == 2 else "total_inactive_file"
        used = int((self.folder / current).read_text())
        return max(0, used - _field(self.folder / "memory.stat", cache))


@dataclass(frozen=True)
class CpuLimit:
    """A quota of processor time and the group that sets it."""

    processors: float
    usage: Path  # cpu.stat in version 2, cpuacct.usage in version 1
    version: int

    def used_seconds(self) -> float:
        """Processor time that the group has used so far; OSError or ValueError where the kernel does not say."""
        if self.version == 2:
            return _field(self.usage, "usage_usec") / 1e6
        return int(self.usage.read_text()) / 1e9


@dataclass(frozen=True)
class Limits:
    """The tightest limits; None: none is set, or none is to be seen (then ``source`` is empty)."""

    memory: MemoryLimit | None
    cpu: CpuLimit | None
    processors: int | None  # how many the cpuset holds
    source: str


def read(root: Path = Path("/")) -> Limits:
    """The limits of this process, by the tree under ``root``; what cannot be read sets no limit."""
    groups = _Groups(root)
    memory = list(_memory(groups))
    cpu = list(_cpu(groups))
    return Limits(
        memory=min(memory, key=lambda limit: limit.limit_bytes, default=None),
        cpu=min(cpu, key=lambda limit: limit.processors, default=None),
        processors=_cpuset(groups),
        source=groups.source(),
    )


class _Groups:
    """Where this process stands in the cgroup trees."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: dict[str, str] = {}  # controller ("" in version 2) -> this process's group
        self._mounts: list[mounts.Mount] = []
        try:
            for line in (root / "proc/self/cgroup").read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                self._paths.update(dict.fromkeys(controllers.split(","), path))
            self._mounts = [m for m in mounts.table(root) if m.filesystem in ("cgroup", "cgroup2")]
        except (OSError, ValueError):
            return

    def levels(self, controller: str) -> Iterator[tuple[int, Path]]:
        """The version and the folder of each group that binds this process, from its own up to the top one seen."""
        version = 1 if controller in self._paths else 2
        path = self._paths.get(controller if version == 1 else "")
        mount = self._mount(controller, version)
        if path is None or mount is None:
            return
        top = self._root / mount.point.relative_to("/")
        inside = _below(path, mount.inner_root)
        for depth in range(len(inside), -1, -1):
            yield version, top.joinpath(*inside[:depth])

    def together(self, one: str, other: str) -> bool:
        """Whether two controllers of version 1 put this process in the same group of their two trees."""
        return one in self._paths and self._paths[one] == self._paths.get(other)

    def source(self) -> str:
        """Which version sets the limits; empty where no limit file is to be seen."""
        for version, folder in self.levels("memory"):
            if (folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).exists():
                return f"cgroup v{version}"
        for version, folder in self.levels("cpu"):
            if (folder / ("cpu.max" if version == 2 else "cpu.cfs_quota_us")).exists():
                return f"cgroup v{version}"
        return ""

    def _mount(self, controller: str, version: int) -> mounts.Mount | None:
        for mount in reversed(self._mounts):
            if version == 2 and mount.filesystem == "cgroup2":
                return mount
            if version == 1 and mount.filesystem == "cgroup" and controller in mount.options:
                return mount
        return None


def _below(path: str, inner_root: str) -> list[str]:
    """The steps from a mount's own root down to the group; none where the group lies outside of what is mounted."""
    parts, root = Path(path), Path(inner_root)
    if ".." in parts.parts or not parts.is_relative_to(root):
        return []
    return list(parts.relative_to(root).parts)


def _memory(groups: _Groups) -> Iterator[MemoryLimit]:
    for version, folder in groups.levels("memory"):
        value = _text(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        if value.isdigit() and int(value) < _UNLIMITED_V1:
            yield MemoryLimit(int(value), folder, version)


def _cpu(groups: _Groups) -> Iterator[CpuLimit]:
    accounts = [folder for _, folder in groups.levels("cpuacct")] if groups.together("cpu", "cpuacct") else []
    for level, (version, folder) in enumerate(groups.levels("cpu")):
        if version == 2:
            quota, _, period = _text(folder / "cpu.max").partition(" ")
            usage = folder / "cpu.stat"
        else:
            quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
            usage = (accounts[level] if level < len(accounts) else folder) / "cpuacct.usage"
        if quota.isdigit() and period.isdigit() and int(quota) > 0 and int(period) > 0:
            yield CpuLimit(int(quota) / int(period), usage, version)


def _cpuset(groups: _Groups) -> int | None:
    for version, folder in groups.levels("cpuset"):
        names = ("cpuset.cpus.effective",) if version == 2 else ("cpuset.effective_cpus", "cpuset.cpus")
        for name in names:
            processors = _list_length(_text(folder / name))
            if processors:
                return processors
    return None


def _list_length(ranges: str) -> int:
    """How many processors a list such as ``0-3,8`` holds; 0 for an empty or unreadable one."""
    total = 0
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return 0
        total += int(last or first) - int(first) + 1
    return total


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    raise ValueError(f"{path} has no {name}")
