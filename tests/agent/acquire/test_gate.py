"""All connections wait together: on a clock that the test moves."""

from datetime import timedelta

import pytest

from agent.acquire.fetching.gate import Gate
from agent.acquire.line.faults import Held
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Failed

LIMITS = Limits(tries=3, longest_hold=timedelta(seconds=60))


class Clock:
    """Only waiting moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.gate = Gate(LIMITS, clock=lambda: self.now)

    def rest(self, seconds: float) -> None:
        self.now += seconds

    def told_to_wait(self, seconds: float, asked_at: float) -> None:
        self.gate.shut(Held("hub.example", timedelta(seconds=seconds)), asked_at)


def test_it_is_open_until_somebody_is_told_to_wait() -> None:
    clock = Clock()
    assert clock.gate.go_through(clock.rest) == 1000
    clock.told_to_wait(20, asked_at=1000)
    assert clock.gate.go_through(clock.rest) == 1020


def test_a_longer_wait_than_a_job_sits_out_ends_the_attempt_with_it() -> None:
    clock = Clock()
    with pytest.raises(Failed) as raised:
        clock.told_to_wait(61, asked_at=1000)
    assert raised.value.code == "rate_limited"
    assert raised.value.retry_after == timedelta(seconds=61)


def test_several_that_were_told_together_count_as_one() -> None:
    clock = Clock()
    for _ in range(8):
        clock.told_to_wait(5, asked_at=999)
    assert clock.gate.go_through(clock.rest) == 1005


def test_a_source_that_is_never_content_ends_the_attempt() -> None:
    clock = Clock()
    for _ in range(3):
        clock.told_to_wait(5, asked_at=clock.gate.go_through(clock.rest))
    with pytest.raises(Failed) as raised:
        clock.told_to_wait(5, asked_at=clock.gate.go_through(clock.rest))
    assert raised.value.code == "rate_limited"


def test_an_answer_in_between_starts_the_count_anew() -> None:
    clock = Clock()
    for _ in range(10):
        clock.told_to_wait(5, asked_at=clock.gate.go_through(clock.rest))
        clock.gate.worked()


def test_a_wait_of_nothing_is_a_short_one() -> None:
    clock = Clock()
    clock.told_to_wait(0, asked_at=1000)
    assert clock.gate.go_through(clock.rest) > 1000
