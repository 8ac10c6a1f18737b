"""How many connections bring bytes: all of them, unless this machine is busy and as much comes over fewer."""

from dataclasses import replace

import pytest

from agent.acquire.fetching.ease import Ease
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Tally

LIMITS = Limits(connections=8, eased_connections=3, fast_bytes_per_second=200e6)
FAST, LESS, SLOW = 600_000_000, 400_000_000, 90_000_000
BUSY, WAITING = 1.4, 0.3
"""Seconds that two cores worked in one second."""


class Machine:
    """Two cores and a line, and a second at a time."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.now, self.used, self.tally = 100.0, 7.0, Tally()
        self.ease = Ease(self.tally, limits, clock=lambda: self.now, used=lambda: self.used, cores=2)

    def second(self, brought: int, used: float) -> int:
        """One passes; how many connections there may be then."""
        self.now, self.used = self.now + 1, self.used + used
        self.tally.add(fetched=brought)
        return self.ease.connections

    def seconds(self, count: int, brought: int, used: float) -> list[int]:
        """How many there may be after each of them."""
        return [self.second(brought, used) for _ in range(count)]


def test_all_connections_bring_bytes_as_long_as_the_line_is_the_slower_one() -> None:
    machine = Machine()
    assert machine.ease.connections == 8
    assert machine.second(SLOW, WAITING) == 8


def test_where_this_machine_is_the_slower_one_half_of_them_are_tried_and_half_of_those() -> None:
    assert Machine().seconds(7, FAST, BUSY) == [4, 4, 4, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("brought", "used"),
    [
        pytest.param(FAST, WAITING, id="fast, and this machine has cores to spare"),
        pytest.param(SLOW, BUSY, id="slow, and this machine reads what was here before"),
    ],
)
def test_nothing_is_taken_away_from_a_line_that_is(brought: int, used: float) -> None:
    assert Machine().seconds(5, brought, used) == [8] * 5


def test_half_that_bring_less_are_not_enough_and_are_not_tried_again_soon() -> None:
    machine = Machine()
    assert machine.second(FAST, BUSY) == 4
    assert machine.seconds(2, LESS, BUSY) == [4, 8]
    found = machine.seconds(12, FAST, BUSY)
    assert set(found[:9]) == {8}
    assert found[-1] == 4


@pytest.mark.parametrize(("brought", "used"), [(SLOW, BUSY), (FAST, WAITING)], ids=["slow", "waiting for the line"])
def test_half_that_leave_the_line_the_slower_one_are_not_tried_again_soon(brought: int, used: float) -> None:
    machine = Machine()
    assert machine.second(FAST, BUSY) == 4
    assert machine.second(brought, used) == 8
    found = machine.seconds(12, FAST, BUSY)
    assert set(found[:9]) == {8}
    assert found[-1] == 4


def test_half_are_judged_by_what_they_bring_and_not_by_what_was_on_its_way() -> None:
    machine = Machine()
    machine.second(FAST, BUSY)
    assert machine.seconds(2, LESS, BUSY) == [4, 8]
    fair = Machine()
    fair.second(FAST, BUSY)
    assert [fair.second(LESS, BUSY), fair.second(FAST, BUSY)] == [4, 4]


@pytest.mark.parametrize(
    ("brought", "used", "connections"),
    [
        pytest.param(SLOW, BUSY, 8, id="slow again"),
        pytest.param(FAST, WAITING, 8, id="waiting for the line"),
        pytest.param(FAST, 0.7, 3, id="a little less busy"),
        pytest.param(150_000_000, BUSY, 3, id="a little slower"),
    ],
)
def test_the_others_come_back_once_they_would_help(brought: int, used: float, connections: int) -> None:
    machine = Machine()
    machine.seconds(7, FAST, BUSY)
    assert machine.second(brought, used) == connections


def test_what_was_seen_holds_until_it_is_looked_at_again() -> None:
    machine = Machine()
    machine.second(FAST, BUSY)
    machine.now += LIMITS.ease_every.total_seconds() / 2
    assert machine.ease.connections == 4


def test_it_never_means_more_connections_than_there_are() -> None:
    machine = Machine(replace(LIMITS, connections=2))
    assert machine.seconds(4, FAST, BUSY) == [2] * 4
