"""What a root lies on: shares and mounts that are no place for models, disks that refuse, and those that hang."""

import errno
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import mounts, roots, volumes
from agent.acquire.places import MARKER
from agent.acquire.terms import Failed
from agent.roots import Ground
from tests.agent.proving import (
    NODE,
    NOW,
    approved,
    fault,
    mounted,
    order,
    prove,
    refusing,
)


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


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM], ids=["EACCES", "EROFS", "EPERM"])
def test_a_folder_that_cannot_be_written_is_told(ground: Ground, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    refusing(code, volumes.PROBE_NAME, monkeypatch)
    assert fault(ground, wanted) == "not_writable"


def test_a_full_disk_is_no_fault_of_the_root(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard answers it with numbers; the root stays what it is."""
    wanted = approved(ground)
    refusing(errno.ENOSPC, volumes.PROBE_NAME, monkeypatch)
    assert fault(ground, wanted) is None


def test_an_approval_on_a_full_disk_is_none(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(errno.ENOSPC, f"{MARKER}.new", monkeypatch)
    proof = prove(ground, order(ground, approve=True))
    assert proof.fault == "not_writable"
    assert "Free some space" in proof.detail


def test_a_disk_that_errs_is_told_with_the_errors_name(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    refusing(errno.EIO, volumes.PROBE_NAME, monkeypatch)
    proof = prove(ground, wanted)
    assert proof.fault == "error"
    assert "EIO" in proof.detail


def test_a_busy_job_is_spared_the_probe(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = approved(ground)
    refusing(errno.EIO, volumes.PROBE_NAME, monkeypatch)
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
    refusing(errno.EROFS, volumes.PROBE_NAME, monkeypatch)
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
