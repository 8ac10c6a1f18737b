"""The rules of leases by table: what a failure leads to, how long a pause is, how a course is thinned."""

from datetime import timedelta
from itertools import pairwise
from typing import get_args

import pytest

from agent import wire
from artifacts import leases
from artifacts.leases import Verdict

HALF_A_MINUTE = timedelta(seconds=30)
PASSING = sorted(set(get_args(wire.PassingFailure)) - {"rate_limited", "lease_lost"})


@pytest.mark.parametrize("code", sorted(get_args(wire.LastingFailure)))
def test_a_lasting_failure_ends_the_job_and_spends_nothing(code: str) -> None:
    assert leases.after_failure(code, spent=0, most=5) == Verdict(ends=True, spent=0)


@pytest.mark.parametrize("code", PASSING)
def test_a_passing_failure_puts_the_job_back_after_a_pause(code: str) -> None:
    assert leases.after_failure(code, spent=0, most=5) == Verdict(ends=False, spent=1, pause=HALF_A_MINUTE)


@pytest.mark.parametrize("code", [*PASSING, "lease_lost"])
def test_the_last_attempt_ends_the_job(code: str) -> None:
    assert leases.after_failure(code, spent=4, most=5) == Verdict(ends=True, spent=5)


def test_a_lost_lease_puts_the_job_back_without_a_pause() -> None:
    assert leases.after_failure("lease_lost", spent=0, most=5) == Verdict(ends=False, spent=1)


@pytest.mark.parametrize(
    ("told", "waits"),
    [
        (None, HALF_A_MINUTE),
        (timedelta(seconds=1), HALF_A_MINUTE),
        (timedelta(hours=2), timedelta(hours=2)),
        (timedelta(days=9), timedelta(hours=24)),
    ],
    ids=["untold", "short", "told", "long"],
)
def test_a_limited_rate_waits_as_told_outside_the_attempts(told: timedelta | None, waits: timedelta) -> None:
    assert leases.after_failure("rate_limited", spent=4, most=5, retry_after=told) == Verdict(False, 4, waits)


@pytest.mark.parametrize(
    ("spent", "minutes"), [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (8, 30), (10_000, 30)], ids=str
)
def test_the_pause_doubles_up_to_half_an_hour(spent: int, minutes: float) -> None:
    assert leases.pause(spent) == timedelta(minutes=minutes)


def test_every_failure_of_the_wire_has_a_verdict() -> None:
    for code in get_args(wire.FailureCode):
        assert isinstance(leases.after_failure(code, spent=0, most=5), Verdict)


def course(points: int, every: float = 2.0) -> list[leases.Point]:
    """The course of a job that was told of so often."""
    drawn: list[leases.Point] = []
    for number in range(points):
        drawn = leases.with_point(drawn, (number * every, number, 1.0))
    return drawn


@pytest.mark.parametrize("points", [1, 2, 118, 119])
def test_a_short_course_keeps_every_point(points: int) -> None:
    assert [point[1] for point in course(points)] == list(range(points))


@pytest.mark.parametrize("points", [121, 500, 5000, 5003])
def test_a_long_course_is_thinned_evenly_and_keeps_its_ends(points: int) -> None:
    drawn = course(points)
    assert 60 <= len(drawn) <= leases.COURSE_POINTS
    assert (drawn[0][1], drawn[-1][1]) == (0, points - 1)
    apart = [later[0] - sooner[0] for sooner, later in pairwise(drawn[:-1])]
    assert max(apart) == min(apart)


def test_a_clock_that_was_set_back_does_no_harm() -> None:
    drawn = leases.with_point([(1000.0, 5, 1.0), (1002.0, 6, 1.0)], (10.0, 7, 1.0))
    assert drawn[-1] == (10.0, 7, 1.0)
