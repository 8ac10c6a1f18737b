"""What the agent tells about its server as a whole, and about the volumes by name."""

import errno
import os
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from agent import facts, volumes, wire
from agent.facts import Volume
from agent.gpus import Gpus
from agent.wire import Reading
from tests.agent.trees import Tree

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AGENT = wire.AgentFacts(version="0.1.0", protocol=1, python="3.11.7", started_at=NOW, tls_verify=True)


@pytest.fixture
def gpus() -> Iterator[Gpus]:
    opened = Gpus()
    yield opened
    opened.close()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def reasons(*readings: Reading[Any]) -> set[tuple[str | None, int | None]]:
    return {(reading.reason, reading.code) for reading in readings}


def gather(gpus: Gpus, *named: Volume, now: datetime = NOW, boot: int = 1, root: Path = Path("/")) -> wire.Facts:
    return facts.gather(
        boot_id=UUID(int=boot), agent=AGENT, hostname="server01", volumes=named, gpus=gpus, now=now, root=root
    )


def test_all_facts_of_this_very_machine_survive_the_wire_unchanged(gpus: Gpus, tmp_path: Path) -> None:
    gathered = gather(gpus, Volume("state", tmp_path))

    received = msgspec.json.decode(wire.encode(gathered), type=wire.Facts)

    assert received == gathered
    assert wire.digest(received) == wire.digest(gathered)
    assert (gathered.boot_id, gathered.observed_at, gathered.host.hostname) == (UUID(int=1), NOW, "server01")


def test_two_looks_at_an_unchanged_server_have_one_digest(gpus: Gpus, tmp_path: Path) -> None:
    before = gather(gpus, Volume("state", tmp_path))
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    after = gather(gpus, Volume("state", tmp_path), now=NOW + timedelta(hours=1), boot=2)

    assert wire.digest(after) == wire.digest(before)


def test_the_digest_tells_that_a_volume_went_away(gpus: Gpus, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    before = gather(gpus, Volume("state", folder))
    folder.rmdir()

    assert wire.digest(gather(gpus, Volume("state", folder))) != wire.digest(before)


def test_the_hostname_is_the_systems_own_unless_one_is_given() -> None:
    assert facts.host(None).hostname == socket.gethostname()
    assert facts.host("node_A").hostname == "node_A"


def test_an_impossible_hostname_is_cut_to_what_the_wire_carries() -> None:
    """Field case 15."""
    assert facts.host("n" * 300).hostname == "n" * 255
    assert facts.host("\x00\n").hostname == "unnamed"


def test_the_operating_system_is_named_as_its_vendor_does(tree: Tree) -> None:
    tree.write("etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n')

    assert facts.host(None, tree.root).os == "Debian GNU/Linux 12 (bookworm)"


def test_a_system_without_a_name_is_told_by_its_kernel(tree: Tree) -> None:
    assert facts.host(None, tree.root).os == os.uname().sysname


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 9654\n", Reading(value="AMD EPYC 9654")),
        ("processor\t: 0\nModel\t\t: Raspberry Pi 5\n", Reading(value="Raspberry Pi 5")),
        ("processor\t: 0\nCPU part\t: 0xd4f\n", Reading(reason="unsupported")),
    ],
)
def test_the_processor_is_named_or_unsupported(tree: Tree, cpuinfo: str, model: Reading[str]) -> None:
    tree.write("proc/cpuinfo", cpuinfo)

    assert facts.host(None, tree.root).cpu_model == model


def test_a_volume_is_told_with_its_size_its_device_and_that_it_can_be_written(tmp_path: Path) -> None:
    seen, space, status = volumes.facts(Volume("artifacts", tmp_path)), os.statvfs(tmp_path), tmp_path.stat()

    assert (seen.name, seen.path) == ("artifacts", str(tmp_path))
    assert seen.total_bytes == Reading(value=space.f_blocks * space.f_frsize)
    assert seen.device_id == Reading(value=f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}")
    assert seen.writable == Reading(value=True)


def test_free_space_is_what_one_who_is_not_root_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserved = os.statvfs_result((4096, 4096, 1000, 500, 450, 100, 60, 50, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: reserved)

    seen = volumes.facts(Volume("artifacts", tmp_path))

    assert seen.free_bytes == volumes.telemetry(Volume("artifacts", tmp_path)).free_bytes == Reading(value=450 * 4096)
    assert (seen.total_bytes, seen.inodes_total, seen.inodes_free) == (
        Reading(value=1000 * 4096),
        Reading(value=100),
        Reading(value=50),
    )


def test_a_file_system_without_a_number_of_inodes_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    btrfs = os.statvfs_result((4096, 4096, 1000, 500, 450, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: btrfs)

    seen = volumes.facts(Volume("artifacts", tmp_path))

    assert seen.inodes_total == seen.inodes_free == Reading(reason="unsupported")


def test_the_file_system_is_that_of_the_closest_mount(tree: Tree, tmp_path: Path) -> None:
    """Field case 60: Unraid's share is recognised by its type."""
    folder = tmp_path / "share with blank" / "artifacts"
    folder.mkdir(parents=True)
    mounted = str(folder.parent).replace(" ", "\\040")
    tree.write(
        "proc/self/mountinfo",
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        f"40 22 0:44 / {mounted} rw,noatime shared:3 - fuse.shfs shfs rw,user_id=0\n"
        f"41 22 0:45 / {mounted}-other rw - xfs /dev/sdb rw\n",
    )

    inside, itself = (volumes.facts(Volume("artifacts", p), tree.root) for p in (folder, folder.parent))

    assert (inside.filesystem, inside.is_mount) == (Reading(value="fuse.shfs"), Reading(value=False))
    assert (itself.filesystem, itself.is_mount) == (Reading(value="fuse.shfs"), Reading(value=True))


def test_without_the_kernels_list_of_mounts_nothing_is_claimed(tree: Tree, tmp_path: Path) -> None:
    seen = volumes.facts(Volume("artifacts", tmp_path), tree.root)

    assert reasons(seen.is_mount, seen.filesystem) == {("unsupported", None)}
    assert seen.writable == Reading(value=True)


def test_a_missing_volume_gives_reasons_with_the_error_number(tmp_path: Path) -> None:
    seen = volumes.facts(Volume("artifacts", tmp_path / "missing"))

    told = reasons(seen.is_mount, seen.filesystem, seen.device_id, seen.writable, seen.free_bytes)
    assert told == {("error", errno.ENOENT)}


def test_a_volume_that_cannot_be_written_to_says_why() -> None:
    seen = volumes.facts(Volume("artifacts", Path("/sys")))  # refuses new files, to root too

    assert seen.writable.value is False
    assert seen.writable.code in (errno.EACCES, errno.EPERM, errno.EROFS)


def test_a_full_volume_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)

    assert volumes.facts(Volume("artifacts", tmp_path)).writable == Reading(value=False, code=errno.ENOSPC)
    assert list(tmp_path.iterdir()) == []


def test_the_test_of_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / volumes.PROBE_NAME).write_text("left by a power cut")

    volumes.facts(Volume("artifacts", tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_the_test_of_writing_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / volumes.PROBE_NAME).symlink_to(precious)

    seen = volumes.facts(Volume("artifacts", folder))

    assert seen.writable == Reading(reason="error", code=errno.ELOOP)
    assert precious.read_text() == "keep"


def test_a_volume_that_hangs_is_a_reason_and_the_others_are_told(
    tmp_path: Path, gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file server that died takes every call on it along; the agent goes on without that volume."""
    dead, alive, gate = tmp_path / "dead", tmp_path / "alive", threading.Event()
    alive.mkdir()
    dead.mkdir()
    real = os.stat

    def stat(path: Path) -> os.stat_result:
        if path == dead:
            gate.wait()
        return real(path)

    monkeypatch.setattr(volumes, "LOOK_WITHIN", timedelta(seconds=0.05))
    monkeypatch.setattr(volumes, "_stat", stat)
    try:
        seen = gather(gpus, Volume("hf-cache", dead), Volume("artifacts", alive)).volumes
    finally:
        gate.set()

    told = reasons(seen[0].device_id, seen[0].free_bytes, seen[0].writable)
    assert told == {("error", errno.ETIMEDOUT)}
    assert seen[1].writable == Reading(value=True)
