"""Waits between tries: bounded, spread out, and never shorter than the server asked for."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from agent.backoff import Backoff, first_gap, parse_retry_after, steady
from tests.agent.scripted import http_date

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CAP = timedelta(seconds=60)


def backoff(seed: int = 1) -> Backoff:
    return Backoff(floor=timedelta(seconds=2), cap=CAP, rng=Random(seed))


def test_no_wait_is_longer_than_the_cap_however_often_it_failed() -> None:
    tries = backoff()
    assert max(tries.next() for _ in range(2000)) <= CAP


def test_the_first_waits_are_short_and_the_ceiling_doubles() -> None:
    ceilings = [max(_wait_number(n, seed) for seed in range(300)) for n in range(4)]
    for found, ceiling in zip(ceilings, (2, 4, 8, 16), strict=True):
        assert 0.9 * ceiling < found.total_seconds() <= ceiling


def test_jitter_comes_after_the_cap_so_that_long_waits_are_spread_over_all_of_it() -> None:
    """Field case 32."""
    waits = sorted(_wait_number(20, seed).total_seconds() for seed in range(400))
    assert waits[0] < 6
    assert waits[-1] > 54
    assert 20 < waits[200] < 40


def _wait_number(n: int, seed: int) -> timedelta:
    tries = backoff(seed)
    for _ in range(n):
        tries.next()
    return tries.next()


def test_success_starts_again_from_the_floor() -> None:
    tries = backoff()
    for _ in range(10):
        tries.next()
    tries.reset()
    assert tries.next() <= timedelta(seconds=2)


def test_what_the_server_asks_for_is_a_floor_with_jitter_on_top() -> None:
    waits = {backoff(seed).next(timedelta(seconds=30)) for seed in range(50)}
    assert min(waits) >= timedelta(seconds=30)
    assert len(waits) == 50


def test_no_server_silences_an_agent_for_more_than_an_hour() -> None:
    assert backoff().next(timedelta(days=3)) <= timedelta(hours=1) + CAP


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("0", timedelta()),
        ("55", timedelta(seconds=55)),
        (" 7 ", timedelta(seconds=7)),
        (http_date(NOW + timedelta(seconds=90)), timedelta(seconds=90)),
        (http_date(NOW - timedelta(days=1)), timedelta()),
        ("999999999999999999999", timedelta(hours=1)),
        ("soon", None),
        ("-5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, wait: timedelta | None) -> None:
    assert parse_retry_after(header, now=NOW) == wait


def test_the_steady_interval_drifts_by_a_tenth_at_most() -> None:
    rng = Random(1)
    waits = [steady(timedelta(seconds=100), rng).total_seconds() for _ in range(500)]
    assert 90 <= min(waits) < 92
    assert 108 < max(waits) <= 110


def test_the_first_gap_is_a_random_phase() -> None:
    rng = Random(1)
    gaps = [first_gap(timedelta(seconds=100), rng).total_seconds() for _ in range(500)]
    assert 10 <= min(gaps) < 15
    assert 95 < max(gaps) <= 100
