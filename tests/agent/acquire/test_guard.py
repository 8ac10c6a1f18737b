"""A snapshot that does not fit is refused before a byte of it comes, with the numbers that say why."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from agent import wire
from agent.acquire.disk import guard
from agent.acquire.disk.guard import Space
from agent.acquire.terms import Failed, Plan, PlannedFile, Tally
from tests.agent.acquire.samples import COMMIT, order

PLAN = Plan(
    "org/model",
    COMMIT,
    (PlannedFile("a.json", 300, git_sha1="0" * 40), PlannedFile("d/e/model.safetensors", 700, sha256="0" * 64)),
)
INODES = 2 + 2 + guard._OWN_NAMES  # files, folders, and what we add


def space(free: int = 10**9, *, files: int = 1000, favail: int = 1000) -> Space:
    """A disk with so many bytes free to an unprivileged writer, and more to root."""
    found = SimpleNamespace(
        f_bavail=free, f_frsize=1, f_bfree=free + 10**6, f_files=files, f_favail=favail, f_ffree=999999
    )
    return lambda _: cast(os.statvfs_result, found)


def check(tmp_path: Path, statvfs: Space, *, held: int = 0, **ordered: Any) -> guard.Room:
    """Measure for PLAN."""
    return guard.check(PLAN, order=order(**ordered), root=tmp_path, held_bytes=held, statvfs=statvfs)


def refusal(tmp_path: Path, statvfs: Space, *, held: int = 0, **ordered: Any) -> Failed:
    """Why it does not fit."""
    with pytest.raises(Failed) as caught:
        check(tmp_path, statvfs, held=held, **ordered)
    assert caught.value.code == "insufficient_capacity"
    return caught.value


def test_a_snapshot_may_fill_the_disk_to_the_last_byte_and_no_further(tmp_path: Path) -> None:
    assert check(tmp_path, space(1000)).needed_bytes == 1000
    assert refusal(tmp_path, space(999)).numbers["free_bytes"] == 999


def test_the_reserve_and_what_other_jobs_will_write_come_on_top(tmp_path: Path) -> None:
    check(tmp_path, space(1125), reserve_bytes=100, reserved_bytes=25)
    failed = refusal(tmp_path, space(1124), reserve_bytes=100, reserved_bytes=25)
    assert failed.numbers == {
        "needed_bytes": 1125,
        "free_bytes": 1124,
        "missing_bytes": 1000,
        "reserved_bytes": 25,
        "reserve_bytes": 100,
        "snapshot_bytes": 1000,
        "inodes_needed": INODES,
        "inodes_free": 1000,
    }
    assert "1.099 KiB in all" in failed.detail


def test_what_lies_here_already_is_not_needed_again(tmp_path: Path) -> None:
    check(tmp_path, space(400), held=600)
    assert refusal(tmp_path, space(399), held=600).numbers["missing_bytes"] == 400


def test_more_held_than_planned_makes_no_room(tmp_path: Path) -> None:
    assert check(tmp_path, space(0), held=5000).missing_bytes == 0


def test_the_ceiling_counts_the_whole_snapshot_wherever_its_bytes_come_from(tmp_path: Path) -> None:
    check(tmp_path, space(), held=600, room_bytes=1000)
    failed = refusal(tmp_path, space(), held=600, room_bytes=999)
    assert failed.numbers["room_bytes"] == 999
    assert "ceiling" in failed.detail


def test_a_file_or_folder_more_than_there_are_inodes_is_refused(tmp_path: Path) -> None:
    check(tmp_path, space(favail=INODES))
    failed = refusal(tmp_path, space(favail=INODES - 1))
    assert (failed.numbers["inodes_needed"], failed.numbers["inodes_free"]) == (INODES, INODES - 1)


def test_a_file_system_that_counts_no_inodes_has_enough(tmp_path: Path) -> None:
    assert check(tmp_path, space(files=0, favail=0)).inodes_free is None


def test_a_preflight_measures_without_refusing(tmp_path: Path) -> None:
    room = guard.room(PLAN, order=order(), root=tmp_path, statvfs=space(999))
    assert (room.needed_bytes, room.free_bytes, bool(room.lacks)) == (1000, 999, True)


def test_the_real_disk_is_asked_of_the_root_itself(tmp_path: Path) -> None:
    here = os.statvfs(tmp_path)
    room = guard.room(PLAN, order=order(), root=tmp_path)
    assert abs(room.free_bytes - here.f_bavail * here.f_frsize) < 10**9


def test_a_root_that_is_gone_or_a_link_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("gone", "link"):
        with pytest.raises(Failed) as caught:
            guard.room(PLAN, order=order(), root=tmp_path / name)
        assert caught.value.code == "storage_error"


def test_the_tally_says_that_the_room_is_measured(tmp_path: Path) -> None:
    tally = Tally()
    guard.check(PLAN, order=order(), root=tmp_path, tally=tally, statvfs=space())
    assert tally.phase == "guard"


def test_a_file_system_without_bounds_tells_numbers_that_are_taken(tmp_path: Path) -> None:
    """Some tell 2**64 - 1 where they do not count, as CephFS does of inodes."""
    endless = space(2**64 - 1, favail=2**64 - 1)
    assert check(tmp_path, endless).free_bytes == 2**63 - 1
    told = wire.encode(refusal(tmp_path, endless, room_bytes=999).told())
    assert msgspec.json.decode(told, type=wire.Failure).numbers["inodes_free"] == 2**63 - 1
