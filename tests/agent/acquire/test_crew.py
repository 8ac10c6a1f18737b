"""Threads share a plan's files out: how many of them bring bytes at one time."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.acquire.fetching.crew import Crew
from agent.acquire.fetching.ease import Ease
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Plan, PlannedFile, Tally
from tests.agent.acquire.fetching import LIMITS
from tests.parts.ports import until

DATA = bytes(5 * LIMITS.segment_bytes)
PLAN = Plan("org/m", "0" * 40, (PlannedFile("f.bin", len(DATA), sha256=hashlib.sha256(DATA).hexdigest()),))
Piece = tuple[Part, Segment]


class Told(Ease):
    """As many connections as the test says."""

    def __init__(self, connections: int) -> None:
        self.most, self.asked = connections, 0

    @property
    def connections(self) -> int:
        """Counts who asks."""
        self.asked += 1
        return self.most


@pytest.fixture
def crew_of(tmp_path: Path) -> Iterator[Callable[..., Crew]]:
    made: list[Crew] = []
    with Shelf(tmp_path, PLAN) as shelf:

        def make(ease: Ease, limits: Limits = LIMITS) -> Crew:
            crew = Crew(
                PLAN,
                shelf,
                limits,
                brake=Brake(),
                tally=Tally(),
                ease=ease,
                still=lambda: None,
                mismatch=lambda *_: None,
                halt=lambda: None,
            )
            crew.sign_on([0], [])
            made.append(crew)
            return crew

        yield make
        for crew in made:
            crew.stop()
            crew.wind_up()


def taking(crew: Crew, taken: list[Piece | None]) -> threading.Thread:
    thread = threading.Thread(target=lambda: taken.append(crew.next_piece(None)), daemon=True)
    thread.start()
    return thread


def test_two_connections_bring_two_pieces(crew_of: Callable[..., Crew]) -> None:
    crew, taken = crew_of(Told(2)), list[Piece | None]()
    for _ in range(2):
        taking(crew, taken).join(5)
    assert [piece[1].start for piece in taken if piece] == [0, LIMITS.segment_bytes]


def test_one_too_many_waits_until_another_is_done(crew_of: Callable[..., Crew]) -> None:
    ease, taken = Told(1), list[Piece | None]()
    crew = crew_of(ease)
    first = crew.next_piece(None)
    assert first is not None
    asked = ease.asked
    waiting = taking(crew, taken)
    until(lambda: ease.asked > asked + 1, "it looks again")
    assert taken == []
    crew.leave(*first)
    waiting.join(5)
    assert len(taken) == 1


def test_one_that_waits_is_wanted_again_once_the_line_is_slow(crew_of: Callable[..., Crew]) -> None:
    ease, taken = Told(1), list[Piece | None]()
    crew = crew_of(ease)
    crew.next_piece(None)
    waiting = taking(crew, taken)
    ease.most = 2
    waiting.join(5)
    assert len(taken) == 1


def test_one_that_waits_leaves_when_the_fetch_ends(crew_of: Callable[..., Crew]) -> None:
    taken = list[Piece | None]()
    crew = crew_of(Told(1))
    crew.next_piece(None)
    waiting = taking(crew, taken)
    crew.stop()
    waiting.join(5)
    assert taken == [None]


def test_one_for_whom_nothing_is_left_takes_a_half_of_what_another_has_to_bring(crew_of: Callable[..., Crew]) -> None:
    crew, taken = crew_of(Told(6), replace(LIMITS, share_bytes=LIMITS.segment_bytes // 8)), list[Piece | None]()
    pieces = [crew.next_piece(None) for _ in range(5)]
    taking(crew, taken).join(10)
    assert [piece[1].end - piece[1].start for piece in taken if piece] == [LIMITS.segment_bytes // 2]
    shared = [piece[1] for piece in pieces if piece and piece[1].end - piece[1].start < LIMITS.segment_bytes]
    assert [piece[1].start for piece in taken if piece] == [piece.end for piece in shared]


def test_one_for_whom_nothing_is_left_waits_where_a_half_would_be_too_small(crew_of: Callable[..., Crew]) -> None:
    ease, taken = Told(6), list[Piece | None]()
    crew = crew_of(ease, replace(LIMITS, share_bytes=LIMITS.segment_bytes))
    pieces = [crew.next_piece(None) for _ in range(5)]
    asked = ease.asked
    waiting = taking(crew, taken)
    until(lambda: ease.asked > asked + 2, "it looks again")
    assert taken == []
    assert {piece[1].end - piece[1].start for piece in pieces if piece} == {LIMITS.segment_bytes}
    crew.stop()
    waiting.join(5)
