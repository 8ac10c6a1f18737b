"""Removing unpublishes first and deletes then; it never leaves the root, follows a link, or stays half done."""

import os
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent import wire
from agent.acquire.disk import remove
from agent.acquire.terms import Brake, Failed, Stopped
from tests.agent.acquire.samples import COMMIT, JOB, OTHER_COMMIT, fetched, published, snapshot_order
from tests.parts import disks

FILES = {"config.json": b"{}", "d/e/model.safetensors": b"weights"}
OTHER_JOB = UUID("22222222-2222-4333-8444-555555555555")


def do(root: Path, *, brake: Brake | None = None, job: UUID = JOB, **changes: Any) -> None:
    """Remove org/model at COMMIT."""
    order = snapshot_order(wire.RemoveOrder, root, **changes)
    remove.remove(order, root=root, job_id=job, brake=brake or Brake())


def below(root: Path) -> list[str]:
    """All that lies there."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root beside something that is nobody's business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture(autouse=True)
def outside_stays(root: Path) -> Any:
    """Whatever a test does."""
    yield
    assert below(root.parent / "outside") == ["precious"]


def test_a_removed_snapshot_is_gone_with_its_empty_folders(root: Path) -> None:
    published(root, FILES)
    do(root)
    assert below(root) == [".partial", ".removed", "models"]


def test_other_snapshots_stay(root: Path) -> None:
    published(root, FILES)
    other = published(root, FILES, commit=OTHER_COMMIT)
    do(root)
    assert (other / "config.json").read_bytes() == b"{}"
    assert not (root / "models/org/model" / COMMIT).exists()


def test_removing_what_is_not_there_is_done(root: Path) -> None:
    do(root)
    assert below(root) == []


def test_an_order_that_points_elsewhere_removes_nothing(root: Path) -> None:
    published(root, FILES)
    before = below(root)
    for snapshot in ("../outside", "models/org/model", "models", f"models/org/model/{COMMIT}/d", ""):
        with pytest.raises(Failed) as caught:
            do(root, snapshot=snapshot)
        assert caught.value.code == "unsupported"
    assert below(root) == before


@pytest.mark.parametrize("place", ["models", "models/org", "models/org/model", f"models/org/model/{COMMIT}"], ids=str)
def test_a_link_on_the_way_is_refused(root: Path, place: str) -> None:
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(root.parent / "outside")
    with pytest.raises(Failed) as caught:
        do(root)
    assert caught.value.code == "storage_error"
    assert (root / place).is_symlink()


def test_a_link_within_the_snapshot_is_deleted_and_not_followed(root: Path) -> None:
    snapshot = published(root, FILES)
    (snapshot / "way").symlink_to(root.parent / "outside")
    (snapshot / "d" / "file").symlink_to(root.parent / "outside" / "precious")
    do(root)
    assert not snapshot.exists()


def test_what_is_mounted_within_the_snapshot_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = published(root, FILES)
    inode = (snapshot / "d" / "e").stat().st_ino
    real = remove.mount_of
    monkeypatch.setattr(remove, "mount_of", lambda fd: "other" if os.fstat(fd).st_ino == inode else real(fd))
    with pytest.raises(Failed, match="mounted there"):
        do(root)
    assert (root / ".removed" / str(JOB) / "d/e/model.safetensors").exists()


def test_mounts_are_told_apart_by_the_kernels_number(tmp_path: Path) -> None:
    here, proc = os.open(tmp_path, os.O_RDONLY), os.open("/proc", os.O_RDONLY)
    try:
        assert remove.mount_of(here).isdigit()
        assert remove.mount_of(here) != remove.mount_of(proc)
    finally:
        os.close(here)
        os.close(proc)


def test_a_brake_that_is_pulled_before_keeps_the_snapshot(root: Path) -> None:
    snapshot = published(root, FILES)
    brake = Brake()
    brake.pull("cancelled")
    with pytest.raises(Stopped):
        do(root, brake=brake)
    assert (snapshot / "config.json").exists()


class Late(Brake):
    """Pulled once the snapshot is unpublished."""

    def __init__(self, root: Path, why: str) -> None:
        super().__init__()
        self._root, self._reason = root, why

    def check(self) -> None:
        if not (self._root / "models/org").exists():
            self.pull(self._reason)
        super().check()


def test_a_removal_that_is_released_half_done_is_finished_by_its_next_attempt(root: Path) -> None:
    published(root, FILES)
    with pytest.raises(Stopped):
        do(root, brake=Late(root, "released"))
    assert not (root / "models/org").exists()
    assert below(root / ".removed")
    do(root)
    assert below(root / ".removed") == []


def test_a_removal_that_is_released_half_done_is_finished_at_the_next_start(root: Path) -> None:
    published(root, FILES)
    with pytest.raises(Stopped):
        do(root, brake=Late(root, "lease_lost"))
    remove.finish_removals(root)
    assert below(root / ".removed") == []


def test_a_cancellation_after_the_snapshot_is_unpublished_comes_too_late(root: Path) -> None:
    published(root, FILES)
    do(root, brake=Late(root, "cancelled"))
    assert below(root) == [".partial", ".removed", "models"]


def test_finishing_where_nothing_was_begun_does_nothing(root: Path) -> None:
    remove.finish_removals(root)
    assert below(root) == []


@pytest.mark.parametrize(("why", "goes_on"), [("released", False), ("lease_lost", False), ("cancelled", True)])
def test_what_was_removed_earlier_is_not_finished_by_a_job_that_is_told_to_stop(
    root: Path, why: str, goes_on: bool
) -> None:
    """Thousands of files take minutes, and the next start finishes them; a cancellation brings nothing back."""
    file = root / ".removed/earlier/config.json"
    file.parent.mkdir(parents=True)
    file.touch()
    brake = Brake()
    brake.pull(why)
    with nullcontext() if goes_on else pytest.raises(Stopped):
        remove.finish_removals(root, brake)
    assert file.exists() is not goes_on


def test_what_cannot_be_deleted_holds_up_neither_the_rest_nor_another_job(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each job finishes what others left; a disk that is mounted in there must not end all of them."""
    busy, idle = root / ".removed" / str(JOB), root / ".removed" / str(OTHER_JOB)
    idle.mkdir(parents=True)
    with disks.memory(busy / "d", disks.MIB):
        (busy / "d" / "model").write_bytes(b"x")
        remove.finish_removals(root)
        assert below(root / ".removed") == [str(JOB), f"{JOB}/d", f"{JOB}/d/model"]
    assert str(JOB) in [str(getattr(record, "removed", "")) for record in caplog.records]
    remove.finish_removals(root)
    assert below(root / ".removed") == []


def test_finishing_does_not_follow_a_link(root: Path) -> None:
    (root / ".removed").mkdir()
    (root / ".removed" / str(JOB)).symlink_to(root.parent / "outside")
    remove.finish_removals(root)
    assert below(root) == [".removed"]


def test_half_done_jobs_are_told_by_their_ids_and_nothing_else_is(root: Path) -> None:
    fetched(root, FILES)
    fetched(root, FILES, OTHER_JOB)
    (root / ".partial" / "lost+found").mkdir()
    (root / ".partial" / str(JOB).upper().replace("1", "A")).mkdir()
    assert remove.partials(root) == [JOB, OTHER_JOB]


def test_a_root_without_half_done_jobs_has_none(root: Path) -> None:
    assert remove.partials(root) == []


def test_only_jobs_that_nothing_was_written_to_for_a_while_are_abandoned(root: Path) -> None:
    fetched(root, FILES)
    busy = fetched(root, FILES, OTHER_JOB)
    long_ago = time.time() - 7200
    for path in (root / ".partial").rglob("*"):
        os.utime(path, (long_ago, long_ago))
    os.utime(busy / "snapshot" / "d/e/model.safetensors")
    assert remove.partials(root, untouched_since=datetime.now(UTC) - timedelta(hours=1)) == [JOB]


def test_forgetting_deletes_the_half_done_files_of_these_jobs_only(root: Path) -> None:
    snapshot = published(root, FILES, job=UUID(int=7))
    fetched(root, FILES)
    fetched(root, FILES, OTHER_JOB)
    remove.forget(root, [JOB, UUID(int=9)])
    assert remove.partials(root) == [OTHER_JOB]
    assert below(root / ".removed") == []
    assert (snapshot / "config.json").exists()


def test_forgetting_does_not_follow_a_link(root: Path) -> None:
    (root / ".partial").mkdir()
    (root / ".partial" / str(JOB)).symlink_to(root.parent / "outside")
    remove.forget(root, [JOB])
    assert below(root / ".partial") == []


def test_forgetting_below_a_linked_folder_is_refused(root: Path) -> None:
    (root.parent / "elsewhere" / str(JOB)).mkdir(parents=True)
    (root / ".partial").symlink_to(root.parent / "elsewhere")
    with pytest.raises(Failed):
        remove.forget(root, [JOB])
    assert (root.parent / "elsewhere" / str(JOB)).is_dir()
