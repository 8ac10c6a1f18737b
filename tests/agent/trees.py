"""Fakes of the files in which a Linux kernel tells a process its limits and mounts."""

from pathlib import Path


class Tree:
    """A root folder that stands for ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def files(self, folder: str, **contents: object) -> None:
        """Files such as memory.max, written memory_max because of Python."""
        for name, content in contents.items():
            controller, _, rest = name.partition("_")
            self.write(f"{folder}/{controller}.{rest}", f"{content}\n")

    def v2(self, group: str = "/", mounted: str = "/") -> None:
        """One unified tree, of which the part below ``mounted`` is seen; this process is in ``group``."""
        self.write("proc/self/cgroup", f"0::{group}\n")
        self.write("proc/self/mountinfo", f"31 23 0:26 {mounted} /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n")

    def v1(self, group: str = "/", mounted: str = "/") -> None:
        """A tree for each controller, and beside them an empty unified one, as systemd's hybrid layout has it."""
        self.write(
            "proc/self/cgroup",
            f"5:memory:{group}\n4:cpuset:{group}\n3:cpu,cpuacct:{group}\n1:name=systemd:{group}\n0::{group}\n",
        )
        places = {"memory": "memory", "cpu,cpuacct": "cpu,cpuacct", "cpuset": "cpuset", "systemd": "name=systemd"}
        lines = [
            f"3{n} 31 0:2{n} {mounted} /sys/fs/cgroup/{place} rw - cgroup cgroup rw,{options}"
            for n, (place, options) in enumerate(places.items())
        ]
        lines.append("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw")
        self.write("proc/self/mountinfo", "\n".join(lines) + "\n")
