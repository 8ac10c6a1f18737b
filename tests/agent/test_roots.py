"""A storage root is proven, not believed: each thing that only looks like the approved folder has its name."""

import errno
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from agent import mounts, roots, volumes, wire
from agent.acquire.places import MARKER
from agent.acquire.terms import Failed
from agent.roots import Ground
from tests.agent.trees import Tree

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
ROOT = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """An artifact volume on a plain disk, outside any container."""
    (tmp_path / "artifacts").mkdir()
    tree = Tree(tmp_path / "system")
    tree.write("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    return Ground(node_id=NODE, artifact_dir=tmp_path / "artifacts", system=tmp_path / "system")


def order(ground: Ground, name: str = "models", **more: Any) -> wire.RootOrder:
    return wire.RootOrder(root_id=ROOT, path=str(ground.artifact_dir / name), **more)


def approved(ground: Ground, name: str = "models") -> wire.RootOrder:
    """A root that was approved, as the control plane orders it from then on."""
    proof = roots.prove(order(ground, name, approve=True), ground, now=NOW)
    assert (proof.fault, proof.detail, proof.approved) == (None, "", True)
    return order(ground, name, device_id=proof.device_id, fsid=proof.fsid)


def prove(ground: Ground, wanted: wire.RootOrder) -> wire.RootProof:
    return roots.prove(wanted, ground, now=NOW)


def fault(ground: Ground, wanted: wire.RootOrder) -> str | None:
    proof = prove(ground, wanted)
    assert bool(proof.detail) == (proof.fault is not None), "a fault tells its remedy"
    assert not (proof.fault and proof.approved)
    return proof.fault


def mounted(ground: Ground, *lines: str, container: bool = False) -> None:
    text = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" if not container else "22 1 0:50 / / rw - overlay overlay rw\n"
    tree = Tree(ground.system)
    tree.write("proc/self/mountinfo", text + "".join(f"{line}\n" for line in lines))
    if container:
        tree.write(".dockerenv", "")


def test_an_approval_makes_the_folder_marks_it_and_tells_its_device(ground: Ground) -> None:
    proof = prove(ground, order(ground, "registry/models", approve=True))
    folder = ground.artifact_dir / "registry/models"
    assert proof.approved
    assert proof.fault is None
    status = folder.stat()
    assert proof.device_id == f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    assert (proof.filesystem, proof.mount_point) == ("ext4", "/")
    assert proof.free_bytes.value
    assert proof.total_bytes.value
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o755, 0o755]
    marker = folder / MARKER
    assert marker.stat().st_mode & 0o777 == 0o444
    said = json.loads(marker.read_text())
    assert said == {"root_id": str(ROOT), "node_id": str(NODE), "approved_at": "2026-03-01T12:00:00+00:00"}
    assert os.listdir(folder) == [MARKER]


def test_an_approved_root_is_proven_from_then_on(ground: Ground) -> None:
    wanted = approved(ground)
    proof = prove(ground, wanted)
    assert proof.fault is None
    assert not proof.approved


def test_a_folder_that_was_never_approved_is_not_proven(ground: Ground) -> None:
    (ground.artifact_dir / "models").mkdir()
    assert fault(ground, order(ground)) == "marker_missing"
    assert os.listdir(ground.artifact_dir / "models") == []


def test_without_an_approval_no_folder_is_made(ground: Ground) -> None:
    assert fault(ground, order(ground)) == "missing"
    assert os.listdir(ground.artifact_dir) == []


def test_the_whole_artifact_volume_may_be_a_root(ground: Ground) -> None:
    whole = wire.RootOrder(root_id=ROOT, path=str(ground.artifact_dir), approve=True)
    assert prove(ground, whole).approved
    assert (ground.artifact_dir / MARKER).exists()


def test_the_artifact_volume_itself_may_be_reached_by_a_link(ground: Ground, tmp_path: Path) -> None:
    """Where the operator has it is his; below it nothing is followed."""
    (tmp_path / "volume").symlink_to(ground.artifact_dir)
    moved = Ground(node_id=NODE, artifact_dir=tmp_path / "volume", system=ground.system)
    assert fault(moved, approved(moved)) is None


@pytest.mark.parametrize("place", ["models", "way/models"], ids=["itself", "on-the-way"])
@pytest.mark.parametrize("approve", [True, False], ids=["approving", "watching"])
def test_a_link_is_no_root_and_nothing_is_written_through_it(
    ground: Ground, tmp_path: Path, place: str, approve: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "models").mkdir(parents=True)
    (ground.artifact_dir / place.split("/")[0]).symlink_to(elsewhere)
    assert fault(ground, order(ground, place, approve=approve)) == "a_link"
    assert [name for _, _, files in os.walk(elsewhere) for name in files] == []


@pytest.mark.parametrize("name", ["models", "models/deep"], ids=["itself", "on-the-way"])
def test_a_file_is_no_root(ground: Ground, name: str) -> None:
    (ground.artifact_dir / "models").write_text("x")
    assert fault(ground, order(ground, name, approve=True)) == "not_a_folder"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc",
        "relative",
        "{volume}/../x",
        "{volume}//x",
        "{volume}/x/",
        "{volume}/./x",
        "{volume}x",
        "{volume}/\0",
    ],
)
def test_what_lies_outside_the_artifact_volume_is_never_touched(ground: Ground, path: str) -> None:
    wanted = wire.RootOrder(root_id=ROOT, path=path.format(volume=ground.artifact_dir), approve=True)
    assert fault(ground, wanted) == "outside_volumes"
    assert os.listdir(ground.artifact_dir) == []


def test_an_artifact_volume_that_is_not_there_is_told(ground: Ground) -> None:
    ground.artifact_dir.rmdir()
    assert fault(ground, order(ground, approve=True)) == "missing"
    assert not ground.artifact_dir.exists()


def test_an_empty_folder_in_the_place_of_the_disk_is_not_the_root(ground: Ground) -> None:
    """Field case 59: the mount is gone, Docker made an empty folder."""
    wanted = approved(ground)
    (ground.artifact_dir / "models").rename(ground.artifact_dir / "unmounted")
    (ground.artifact_dir / "models").mkdir()
    assert fault(ground, wanted) == "marker_missing"
    assert os.listdir(ground.artifact_dir / "models") == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b'{"root_id": "x"}', b"[" * 5000], ids=range(7)
)
def test_a_damaged_marker_is_as_good_as_none_and_an_approval_mends_it(ground: Ground, content: bytes) -> None:
    wanted = approved(ground)
    marker = ground.artifact_dir / "models" / MARKER
    marker.unlink()
    marker.write_bytes(content)
    assert fault(ground, wanted) == "marker_missing"
    approved(ground)
    assert fault(ground, wanted) is None


def test_a_marker_that_is_a_link_is_none(ground: Ground, tmp_path: Path) -> None:
    wanted = approved(ground)
    marker = ground.artifact_dir / "models" / MARKER
    marker.rename(tmp_path / "kept")
    marker.symlink_to(tmp_path / "kept")
    assert fault(ground, wanted) == "marker_missing"


def test_the_marker_of_another_root_is_foreign_to_watching_and_approving(ground: Ground) -> None:
    approved(ground)
    other = wire.RootOrder(root_id=OTHER, path=str(ground.artifact_dir / "models"))
    assert fault(ground, other) == "marker_foreign"
    assert fault(ground, msgspec.structs.replace(other, approve=True)) == "marker_foreign"
    said = json.loads((ground.artifact_dir / "models" / MARKER).read_text())
    assert said["root_id"] == str(ROOT)


def test_the_marker_of_a_retired_root_of_this_node_is_replaced(ground: Ground) -> None:
    approved(ground)
    path = str(ground.artifact_dir / "models")
    other = wire.RootOrder(root_id=OTHER, path=path, approve=True, replaces=[ROOT])
    assert fault(ground, other) is None
    assert json.loads((ground.artifact_dir / "models" / MARKER).read_text())["root_id"] == str(OTHER)


def test_the_marker_that_another_node_wrote_for_that_root_is_not_replaced(ground: Ground) -> None:
    approved(Ground(node_id=OTHER, artifact_dir=ground.artifact_dir, system=ground.system))
    path = str(ground.artifact_dir / "models")
    other = wire.RootOrder(root_id=OTHER, path=path, approve=True, replaces=[ROOT])
    assert fault(ground, other) == "marker_foreign"


def test_the_same_root_of_another_node_is_foreign_until_it_is_approved(ground: Ground) -> None:
    wanted = approved(ground)
    other = Ground(node_id=OTHER, artifact_dir=ground.artifact_dir, system=ground.system)
    assert fault(other, wanted) == "marker_foreign"
    assert fault(other, approved(other)) is None


def test_an_approval_again_replaces_the_old_marker(ground: Ground) -> None:
    approved(ground)
    roots.prove(order(ground, approve=True), ground, now=NOW + timedelta(days=1))
    said = json.loads((ground.artifact_dir / "models" / MARKER).read_text())
    assert said["approved_at"] == "2026-03-02T12:00:00+00:00"
    assert os.listdir(ground.artifact_dir / "models") == [MARKER]


@pytest.mark.parametrize(
    ("device_id", "fsid", "expected"),
    [
        ("same", "same", None),
        ("other", "same", None),  # a restart gave the disk another number
        ("same", "other", None),  # the file system makes up its id at each mount
        ("other", "other", "device_changed"),
        ("other", "", "device_changed"),  # it never had one
        ("", "", None),
    ],
)
def test_another_disk_is_told_by_device_and_file_system_id(
    ground: Ground, device_id: str, fsid: str, expected: str | None
) -> None:
    wanted = approved(ground)
    recorded = {
        "device_id": {"same": wanted.device_id, "other": "250:99", "": ""}[device_id],
        "fsid": {"same": wanted.fsid, "other": "deadbeef", "": ""}[fsid],
    }
    assert fault(ground, msgspec.structs.replace(wanted, **recorded)) == expected


@pytest.mark.parametrize("kind", ["fuse.shfs", "fuse", "fuse.mergerfs"])
def test_a_fuse_share_is_refused_before_anything_is_written(ground: Ground, kind: str) -> None:
    """Field case 60."""
    mounted(ground, f"40 22 0:40 / {ground.artifact_dir} rw - {kind} shfs rw")
    assert fault(ground, order(ground, approve=True)) == "fuse"
    assert os.listdir(ground.artifact_dir) == []


def test_a_share_that_slid_under_an_approved_root_is_refused(ground: Ground) -> None:
    wanted = approved(ground)
    mounted(ground, f"40 22 0:40 / {ground.artifact_dir} rw - fuse.shfs shfs rw")
    proof = prove(ground, wanted)
    assert (proof.fault, proof.filesystem) == ("fuse", "fuse.shfs")
    mounted(ground, f"40 22 8:2 / {ground.artifact_dir} rw - xfs /dev/sdb1 rw")
    assert prove(ground, wanted).filesystem == "xfs"


def test_in_a_container_a_folder_that_is_no_volume_is_refused(ground: Ground) -> None:
    mounted(ground, container=True)
    assert fault(ground, order(ground, approve=True)) == "not_mounted"
    assert os.listdir(ground.artifact_dir) == []
    mounted(ground, f"40 22 8:2 /x {ground.artifact_dir} rw - ext4 /dev/sdb1 rw", container=True)
    assert fault(ground, approved(ground)) is None


def test_who_allowed_what_dies_with_the_container_may_have_such_a_root(ground: Ground) -> None:
    mounted(ground, container=True)
    allowed = Ground(node_id=NODE, artifact_dir=ground.artifact_dir, system=ground.system, ephemeral_ok=True)
    assert fault(allowed, approved(allowed)) is None


def _refusing(code: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of that name be refused by the kernel."""
    real = os.open

    def refuse(path: Any, flags: int, *arguments: Any, **more: Any) -> int:
        if str(path) == name and flags & os.O_CREAT:
            raise OSError(code, os.strerror(code))
        return real(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM], ids=["EACCES", "EROFS", "EPERM"])
def test_a_folder_that_cannot_be_written_is_told(ground: Ground, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    _refusing(code, volumes.PROBE_NAME, monkeypatch)
    assert fault(ground, wanted) == "not_writable"


def test_a_full_disk_is_no_fault_of_the_root(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard answers it with numbers; the root stays what it is."""
    wanted = approved(ground)
    _refusing(errno.ENOSPC, volumes.PROBE_NAME, monkeypatch)
    assert fault(ground, wanted) is None


def test_an_approval_on_a_full_disk_is_none(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    _refusing(errno.ENOSPC, f"{MARKER}.new", monkeypatch)
    proof = prove(ground, order(ground, approve=True))
    assert proof.fault == "not_writable"
    assert "Free some space" in proof.detail


def test_a_disk_that_errs_is_told_with_the_errors_name(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    _refusing(errno.EIO, volumes.PROBE_NAME, monkeypatch)
    proof = prove(ground, wanted)
    assert proof.fault == "error"
    assert "EIO" in proof.detail


def test_a_busy_job_is_spared_the_probe(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    _refusing(errno.EIO, volumes.PROBE_NAME, monkeypatch)
    assert roots.prove(wanted, ground, now=NOW, probe=False).fault is None


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system that does not answer until the test ends."""
    let_go = threading.Event()

    def hang(path: Path, root: Path = Path("/")) -> None:
        let_go.wait(20)

    monkeypatch.setattr(mounts, "covering", hang)
    monkeypatch.setattr(volumes, "LOOK_WITHIN", timedelta(milliseconds=50))
    yield
    let_go.set()


def test_a_file_server_that_hangs_is_overdue_and_then_known(ground: Ground, hanging: None) -> None:
    (ground.artifact_dir / "models").mkdir()
    assert fault(ground, order(ground)) == "overdue"
    assert fault(ground, order(ground)) == "overdue"


def test_what_is_still_right_passes_quickly_and_writes_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    _refusing(errno.EROFS, volumes.PROBE_NAME, monkeypatch)
    roots.still(wanted, ground, now=NOW)


@pytest.mark.parametrize("approve", [True, False])
def test_what_is_no_longer_right_fails_the_job_and_marks_nothing(ground: Ground, approve: bool) -> None:
    wanted = msgspec.structs.replace(approved(ground), approve=approve)
    (ground.artifact_dir / "models" / MARKER).unlink()
    with pytest.raises(Failed) as failed:
        roots.still(wanted, ground, now=NOW)
    assert failed.value.code == "root_unverified"
    assert "marker_missing" in failed.value.detail
    assert os.listdir(ground.artifact_dir / "models") == []


def test_a_root_that_only_hangs_may_be_tried_again(ground: Ground, hanging: None) -> None:
    (ground.artifact_dir / "models").mkdir()
    with pytest.raises(Failed) as failed:
        roots.still(order(ground), ground, now=NOW)
    assert failed.value.code == "storage_error"


@pytest.mark.parametrize("look", [roots.prove, roots.still], ids=["prove", "still"])
def test_no_descriptor_is_left_open(ground: Ground, look: Callable[..., object]) -> None:
    wanted = approved(ground)
    look(wanted, ground, now=NOW)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        look(wanted, ground, now=NOW)
    assert len(os.listdir("/proc/self/fd")) <= before
