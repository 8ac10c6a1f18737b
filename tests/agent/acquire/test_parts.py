"""A file on its way: how far its bytes may run ahead of its hash, and what it notes down."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.terms import Plan, PlannedFile
from tests.agent.acquire.fetching import KIB, LIMITS

SEGMENT = LIMITS.segment_bytes
DATA = bytes(range(256)) * (10 * SEGMENT // 256)
PLAN = Plan("org/m", "0" * 40, (PlannedFile("f.bin", len(DATA), sha256=hashlib.sha256(DATA).hexdigest()),))
AHEAD = replace(LIMITS, ahead_bytes=3 * SEGMENT)
BUFFER = memoryview(bytearray(16 * KIB))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with Shelf(tmp_path, PLAN) as made:
        yield made


@pytest.fixture
def part(shelf: Shelf) -> Iterator[Part]:
    made = Part(0, PLAN, shelf, AHEAD)
    made.open()
    yield made
    made.close()


def taken(part: Part) -> Segment:
    segment = part.segments.take()
    assert segment is not None
    return segment


def lands(part: Part, segment: Segment) -> bool:
    return part.land(segment, memoryview(DATA)[segment.at : segment.end])


def hash_all(part: Part) -> None:
    while part.behind:
        part.hash_on(BUFFER, lambda: None)


def test_bytes_may_run_ahead_of_the_hash_so_far_and_no_further(part: Part) -> None:
    first = taken(part)
    for _ in range(3):
        assert part.wants_bytes
        assert not lands(part, taken(part))
    assert not part.wants_bytes
    lands(part, first)
    hash_all(part)
    assert part.wants_bytes


def test_bytes_that_are_hashed_as_they_land_hold_nothing_up(part: Part) -> None:
    for _ in range(9):
        assert part.wants_bytes
        assert lands(part, taken(part))


def test_what_an_earlier_run_left_is_hashed_beside_whatever_comes(shelf: Shelf, part: Part) -> None:
    for _ in range(5):
        lands(part, taken(part))
    part.note()
    again = Part(0, PLAN, shelf, AHEAD)
    assert again.open() == 5 * SEGMENT
    for _ in range(4):
        assert again.wants_bytes
        lands(again, taken(again))
    hash_all(again)
    lands(again, taken(again))
    assert again.hash.right
    again.close()


def test_a_little_is_left_to_who_brings_the_next_bytes_and_a_lot_is_not(part: Part) -> None:
    part.users = 1
    first, second = taken(part), taken(part)
    lands(part, second)
    wanted = [part.wants_hashing]
    lands(part, first)
    wanted.append(part.wants_hashing)
    part.hashing = True
    wanted.append(part.wants_hashing)
    assert wanted == [False, True, False]


def test_a_file_that_begins_anew_has_nothing(shelf: Shelf, part: Part) -> None:
    lands(part, taken(part))
    part.note()
    assert part.begin_anew() == SEGMENT
    assert part.hash.position == 0
    assert part.segments.spans == []
    assert shelf.part_path(0).stat().st_size == 0
    assert not (shelf.root / "parts" / "0.json").exists()


def test_the_note_holds_what_has_landed_and_no_address(shelf: Shelf, part: Part) -> None:
    part.address, part.etag = "https://cdn.example/x?Signature=s3cret", '"tag"'
    lands(part, taken(part))
    part.note()
    written = (shelf.root / "parts" / "0.json").read_text()
    assert '"spans":[[0,65536]]' in written
    assert "s3cret" not in written
