"""A storage root that was really approved, and what may become of it: for tests of jobs that lose theirs."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock
from uuid import uuid4

import msgspec

from agent import roots, wire
from agent.acquire.places import MARKER
from agent.roots import Ground
from tests.parts import disks
from tests.parts.disks import MIB

NODE = uuid4()


@dataclass
class Server:
    """One root that was approved, and what the kernel says about mounts."""

    folder: Path
    stack: ExitStack
    mounted: list[str] = field(default_factory=list)  # lines of mountinfo, further ones first covered

    @property
    def volume(self) -> Path:
        return self.folder / "artifacts"

    @property
    def root(self) -> Path:
        return self.volume / "models"

    def approve(self) -> None:
        self.say("ext4 /dev/sda1 rw")
        self.order = wire.RootOrder(root_id=uuid4(), path=str(self.root), approve=True)
        proof = roots.prove(self.order, self.ground, now=datetime.now(UTC))
        assert proof.fault is None, proof
        self.order = msgspec.structs.replace(self.order, approve=False, device_id=proof.device_id, fsid=proof.fsid)

    def say(self, what: str) -> None:
        """The kernel says this of the volume."""
        file = self.folder / "system/proc/self/mountinfo"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 8:2 / {self.volume} rw - {what}\n")

    @property
    def ground(self) -> Ground:
        return Ground(node_id=NODE, artifact_dir=self.volume, system=self.folder / "system")

    def still(self) -> None:
        roots.still(self.order, self.ground, now=datetime.now(UTC))


def remove_the_marker(server: Server) -> None:
    (server.root / MARKER).unlink()


def another_roots_marker(server: Server) -> None:
    marker = server.root / MARKER
    said = marker.read_text().replace(str(server.order.root_id), str(uuid4()))
    marker.unlink()
    marker.write_text(said)


def swap_for_an_empty_folder(server: Server) -> None:
    server.root.rename(server.folder / "the true one")
    server.root.mkdir()


def swap_for_a_link(server: Server) -> None:
    server.root.rename(server.folder / "the true one")
    (server.folder / "elsewhere").mkdir()
    server.root.symlink_to(server.folder / "elsewhere")


def swap_for_nothing(server: Server) -> None:
    server.root.rename(server.folder / "the true one")


def swap_for_a_copy(server: Server) -> None:
    """With all that lies in it, the marker too."""
    server.root.rename(server.folder / "the true one")
    with suppress(shutil.Error):  # what the job takes away meanwhile
        shutil.copytree(server.folder / "the true one", server.root)


def mount_a_fuse_share(server: Server) -> None:
    server.say("fuse.shfs shfs rw")


def mount_another_disk(server: Server) -> None:
    """Even one that somebody copied the marker to."""
    marker = (server.root / MARKER).read_text()
    server.stack.enter_context(disks.memory(server.root, 64 * MIB))
    (server.root / MARKER).write_text(marker)


@contextmanager
def approved(folder: Path) -> Iterator[Server]:
    """A root that was approved; what is mounted over it goes in the end."""
    with ExitStack() as stack:
        server = Server(folder, stack)
        server.volume.mkdir()
        server.approve()
        yield server


CHANGES: dict[str, Callable[[Server], None]] = {
    "the marker is removed": remove_the_marker,
    "the marker is another root's": another_roots_marker,
    "an empty folder": swap_for_an_empty_folder,
    "a link": swap_for_a_link,
    "nothing": swap_for_nothing,
    "a FUSE share": mount_a_fuse_share,
    "another disk": mount_another_disk,
}


class Once:
    """Of many that ask at one time the first changes it, and all go on when it is done; ``done`` then, too."""

    def __init__(self, change: Callable[[], None]) -> None:
        self._change, self._lock = change, Lock()
        self.done = Event()

    def __call__(self) -> None:
        with self._lock:
            if not self.done.is_set():
                self._change()
                self.done.set()
