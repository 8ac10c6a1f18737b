"""Threads share a plan's files out: how many of them bring bytes at one time."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.acquire.fetching.crew import Crew
from agent.acquire.fetching.ease import Ease
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.shelf import Shelf
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
def crew_of(tmp_path: Path) -> Iterator[Callable[[Ease], Crew]]:
    made: list[Crew] = []
    with Shelf(tmp_path, PLAN) as shelf:

        def make(ease: Ease) -> Crew:
            crew = Crew(
                PLAN,
                shelf,
                LIMITS,
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


def test_two_connections_bring_two_pieces(crew_of: Callable[[Ease], Crew]) -> None:
    crew, taken = crew_of(Told(2)), list[Piece | None]()
    for _ in range(2):
        taking(crew, taken).join(5)
    assert [piece[1].start for piece in taken if piece] == [0, LIMITS.segment_bytes]


def test_one_too_many_waits_until_another_is_done(crew_of: Callable[[Ease], Crew]) -> None:
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


def test_one_that_waits_is_wanted_again_once_the_line_is_slow(crew_of: Callable[[Ease], Crew]) -> None:
    ease, taken = Told(1), list[Piece | None]()
    crew = crew_of(ease)
    crew.next_piece(None)
    waiting = taking(crew, taken)
    ease.most = 2
    waiting.join(5)
    assert len(taken) == 1


def test_one_that_waits_leaves_when_the_fetch_ends(crew_of: Callable[[Ease], Crew]) -> None:
    taken = list[Piece | None]()
    crew = crew_of(Told(1))
    crew.next_piece(None)
    waiting = taking(crew, taken)
    crew.stop()
    waiting.join(5)
    assert taken == [None]
