"""What an earlier run left is gone on with, whatever ended it, and nothing of it is believed."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.acquire.fetching import KIB, LIMITS, Fetch
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.hub.repositories import Files

BIG = "model.safetensors"
BIG_BYTES = 900_000
FILES: Files = {BIG: weights(BIG_BYTES, seed=1), "config.json": b"{}", "a/b.txt": b"deep"}


@pytest.fixture
def half(hub: Hub, tmp_path: Path) -> Fetch:
    """A fetch that was stopped in the middle of its large file."""
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path / "partial")
    hub.cdn.bytes_per_second = 1_000_000
    assert fetch.run_until(BIG_BYTES // 2) == "released"
    hub.cdn.bytes_per_second = None
    hub.requests.clear()
    assert not fetch.right
    return fetch


def test_after_a_stop_not_a_byte_comes_twice(half: Fetch) -> None:
    before = half.tally.bytes_fetched
    assert half.run() == "done"
    assert half.right
    assert half.hub.sent() == half.tally.bytes_fetched
    assert before + half.tally.bytes_fetched == sum(file.size for file in half.repo.files().values())
    assert half.tally.bytes_done == sum(file.size for file in half.repo.files().values())


def test_whole_files_of_an_earlier_run_do_not_come_again(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "done"
    hub.requests.clear()
    assert fetch.run() == "done"
    assert hub.of() == []
    assert (fetch.tally.files_done, fetch.tally.bytes_fetched) == (3, 0)


def test_a_whole_file_whose_bytes_changed_since_comes_again(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "done"
    with (fetch.snapshot / BIG).open("r+b") as file:
        file.seek(123_456)
        file.write(b"another")
    assert fetch.run() == "done"
    assert fetch.right
    assert fetch.tally.bytes_done == sum(file.size for file in fetch.repo.files().values())


def test_what_this_run_has_proven_already_is_not_read_again(hub: Hub, tmp_path: Path) -> None:
    """By its name; so the caller must have."""
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "done"
    (fetch.snapshot / "config.json").write_bytes(b"[]")
    assert fetch.run(proven={"config.json"}) == "done"
    assert fetch.lying["config.json"] == b"[]"
    assert fetch.tally.files_done == 2


def a_stray(partial: Path) -> None:
    (partial / "snapshot" / "stray.bin").write_bytes(b"evil")


def a_stray_in_a_folder(partial: Path) -> None:
    (partial / "snapshot" / "x").mkdir()
    (partial / "snapshot" / "x" / "stray.bin").write_bytes(b"evil")


def a_link_instead_of_a_file(partial: Path) -> None:
    (partial.parent / "outside").write_bytes(b"{}")
    (partial / "snapshot" / "config.json").unlink()
    (partial / "snapshot" / "config.json").symlink_to(partial.parent / "outside")


def a_link_instead_of_a_folder(partial: Path) -> None:
    (partial.parent / "elsewhere").mkdir()
    (partial / "snapshot" / "a" / "b.txt").unlink()
    (partial / "snapshot" / "a").rmdir()
    (partial / "snapshot" / "a").symlink_to(partial.parent / "elsewhere")


def a_shorter_file(partial: Path) -> None:
    os.truncate(partial / "snapshot" / BIG, 1000)


@pytest.mark.parametrize(
    "change",
    [a_stray, a_stray_in_a_folder, a_link_instead_of_a_file, a_link_instead_of_a_folder, a_shorter_file],
    ids=lambda change: change.__name__,
)
def test_nothing_is_left_in_the_snapshot_that_is_not_the_plans(
    hub: Hub, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path / "partial")
    assert fetch.run() == "done"
    change(fetch.partial)
    assert fetch.run() == "done"
    assert fetch.right
    assert not any(path.is_symlink() for path in fetch.snapshot.rglob("*"))
    if (tmp_path / "elsewhere").exists():
        assert os.listdir(tmp_path / "elsewhere") == []


def lies(**changes: Any) -> Callable[[Path], None]:
    def lie(sidecar: Path) -> None:
        sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | changes))

    return lie


LIES: dict[str, Callable[[Path], object]] = {
    "all of it is here": lies(spans=[[0, BIG_BYTES]]),
    "of another plan": lies(plan="0" * 64),
    "of another file": lies(path="other.safetensors"),
    "of another size": lies(size=BIG_BYTES + 1),
    "of other bytes": lies(digest="0" * 64),
    "beyond the end": lies(spans=[[0, 10**15]]),
    "backwards": lies(spans=[[500, 100]]),
    "negative": lies(spans=[[-100, 100]]),
    "no numbers": lies(spans=[["a", "b"]]),
    "no list": lies(spans={}),
    "torn": lambda sidecar: sidecar.write_bytes(sidecar.read_bytes()[:50]),
    "empty": lambda sidecar: sidecar.write_bytes(b""),
    "not JSON": lambda sidecar: sidecar.write_bytes(b"\x00" * 4096),
    "deep": lambda sidecar: sidecar.write_text("[" * 100_000),
    "gone": lambda sidecar: sidecar.unlink(),
}


@pytest.mark.parametrize("name", LIES)
def test_whatever_the_sidecar_says_the_bytes_are_right_in_the_end(half: Fetch, name: str) -> None:
    LIES[name](half.partial / "parts" / "0.json")
    assert half.run() == "done"
    assert half.right
    assert half.wrong == []
    assert half.tally.bytes_done == sum(file.size for file in half.repo.files().values())


def test_bytes_that_went_wrong_on_the_disk_meanwhile_are_fetched_again(half: Fetch) -> None:
    part = half.partial / "parts" / "0.part"
    with part.open("r+b") as file:
        file.write(b"rotten")
    assert half.run() == "done"
    assert half.right
    assert half.wrong == []


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_part_that_is_a_link_is_not_written_through(half: Fetch, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    part = half.partial / "parts" / "0.part"
    part.unlink()
    part.symlink_to(outside) if kind == "symbolic" else part.hardlink_to(outside)
    assert half.run() == "done"
    assert half.right
    assert outside.read_bytes() == b"mine"


def test_a_file_that_changed_at_its_source_meanwhile_begins_anew(half: Fetch) -> None:
    half.hub.fault("cdn", Fault(headers={"ETag": '"another"'}))
    assert half.run() == "done"
    assert half.right
    assert half.hub.sent(BIG) >= BIG_BYTES


def test_what_is_not_the_plans_among_the_parts_is_taken_away(half: Fetch) -> None:
    (half.partial / "parts" / "99.part").write_bytes(b"x" * 1000)
    (half.partial / "parts" / "notes.txt").write_bytes(b"x")
    assert half.run() == "done"
    assert os.listdir(half.partial / "parts") == []


def test_other_segments_than_the_earlier_runs_are_no_hindrance(half: Fetch) -> None:
    before = half.tally.bytes_done
    half.limits = replace(LIMITS, segment_bytes=100 * KIB)
    assert half.run() == "done"
    assert half.right
    assert half.hub.sent(BIG) <= BIG_BYTES - before + 2 * LIMITS.connections * 100 * KIB
