"""A file on its way: how far its bytes may run ahead of its hash, and what it notes down."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.faults import Restart
from agent.acquire.terms import Plan, PlannedFile
from tests.agent.acquire.fetching import KIB, LIMITS

SEGMENT = LIMITS.segment_bytes
DATA = bytes(range(256)) * (10 * SEGMENT // 256)
PLAN = Plan("org/m", "0" * 40, (PlannedFile("f.bin", len(DATA), sha256=hashlib.sha256(DATA).hexdigest()),))
AHEAD = replace(LIMITS, ahead_bytes=3 * SEGMENT)
SHARED = replace(LIMITS, share_bytes=SEGMENT // 8)
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


def test_what_two_connections_brought_of_one_piece_is_gone_on_with(shelf: Shelf) -> None:
    part = Part(0, PLAN, shelf, SHARED)
    part.open()
    pieces = [taken(part) for _ in range(10)]
    assert part.share(now=1.0)
    half = taken(part)
    shared = next(piece for piece in pieces if piece.end == half.start)
    for piece in (shared, half):
        count = part.room(piece, 1000)
        assert part.land(piece, memoryview(DATA)[piece.at : piece.at + count]) == (piece.start == 0)
    part.note()
    part.close()
    again = Part(0, PLAN, shelf, SHARED)
    assert again.open() == 2000
    assert again.segments.spans == [(shared.start, shared.start + 1000), (half.start, half.start + 1000)]
    again.close()


def test_bytes_that_are_asked_for_at_a_connection_are_no_others(shelf: Shelf) -> None:
    part = Part(0, PLAN, shelf, SHARED)
    part.open()
    pieces = [taken(part) for _ in range(10)]
    assert {part.room(piece, SEGMENT) for piece in pieces} == {SEGMENT}
    assert not part.share(now=1.0)
    assert {part.room(piece, 1000) for piece in pieces} == {1000}
    assert part.share(now=1.0)
    shared = next(piece for piece in pieces if piece.end - piece.start < SEGMENT)
    assert shared.end >= shared.start + 1000
    part.close()


@pytest.mark.parametrize("why", ["one-piece", "no-ranges", "something-is-left", "begins-anew"])
def test_a_piece_is_shared_only_where_both_halves_can_be_asked_for(shelf: Shelf, why: str) -> None:
    part = Part(0, PLAN, shelf, replace(SHARED, segment_bytes=len(DATA)) if why == "one-piece" else SHARED)
    part.open()
    while part.segments.left > (why == "something-is-left"):
        taken(part)
    part.ranged = why != "no-ranges"
    part.anew = Restart("source_unavailable", "it changed") if why == "begins-anew" else None
    assert not part.share(now=1.0)
    part.close()


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
