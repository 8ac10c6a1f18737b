"""A root that is no longer what was approved gets no byte: not before a job, and not from the next file on."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from agent import roots, wire
from agent.acquire.places import MARKER
from agent.acquire.terms import Failed
from agent.roots import Ground
from tests.agent.acquire.acquiring import REPO, tree
from tests.agent.acquire.attempts import LIMITS, Ordered
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts import disks
from tests.parts.disks import MIB

FILES = {f"{number:02}.safetensors": weights(300_000, seed=number) for number in range(20)}


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


NODE = uuid4()


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


def mount_a_fuse_share(server: Server) -> None:
    server.say("fuse.shfs shfs rw")


def mount_another_disk(server: Server) -> None:
    """Even one that somebody copied the marker to."""
    marker = (server.root / MARKER).read_text()
    server.stack.enter_context(disks.memory(server.root, 64 * MIB))
    (server.root / MARKER).write_text(marker)


CHANGES: dict[str, Callable[[Server], None]] = {
    "the marker is removed": remove_the_marker,
    "the marker is another root's": another_roots_marker,
    "an empty folder": swap_for_an_empty_folder,
    "a link": swap_for_a_link,
    "nothing": swap_for_nothing,
    "a FUSE share": mount_a_fuse_share,
    "another disk": mount_another_disk,
}


@pytest.mark.parametrize("name", CHANGES)
def test_before_a_job_no_byte_is_written(hub: Hub, tmp_path: Path, name: str) -> None:
    """Field cases 59 and 60."""
    repo = hub.repo(REPO, FILES)
    with ExitStack() as stack:
        server = Server(tmp_path, stack)
        server.volume.mkdir()
        server.approve()
        CHANGES[name](server)
        before = tree(tmp_path)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still).run()
        assert failed.value.code == "root_unverified"
        assert failed.value.detail
        assert tree(tmp_path) == before
        assert hub.of("cdn", "resolve") == []


@pytest.mark.parametrize("name", CHANGES)
def test_in_the_middle_of_a_job_no_further_file_is_begun(hub: Hub, tmp_path: Path, name: str) -> None:
    repo = hub.repo(REPO, FILES)
    with ExitStack() as stack:
        server = Server(tmp_path, stack)
        server.volume.mkdir()
        server.approve()
        hub.fault("cdn", Fault(meanwhile=lambda: CHANGES[name](server)), after=6, times=1)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still, limits=replace(LIMITS, open_files=3)).run()
        assert failed.value.code in ("root_unverified", "storage_error")  # what the disk refuses may be noticed first
        assert len({request.file for request in hub.of("cdn")}) < len(FILES)
        assert not (tmp_path / "artifacts" / "models" / "models").exists()
        if "folder" in name or name == "a link":
            taken_its_place = server.root.resolve()
            assert list(taken_its_place.iterdir()) == []
        after = tree(tmp_path)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still).run()
        assert failed.value.code == "root_unverified"
        assert tree(tmp_path) == after


def test_the_root_as_it_was_approved_takes_the_snapshot(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    with ExitStack() as stack:
        server = Server(tmp_path, stack)
        server.volume.mkdir()
        server.approve()
        job = Ordered(hub, server.root, repo, still=server.still)
        assert job.run().outcome == "succeeded"
        assert job.told == [(repo.sha, 0)]
