"""When progress is told, and what it says of rate and remaining time."""

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from agent import wire
from agent.acquire.terms import Tally
from agent.telling import Telling

LEASE = UUID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
LENGTH = timedelta(seconds=300)
MB = 1_000_000


def told(tally: Tally, telling: Telling, seconds: float, rate: float, *, step: float = 0.25) -> list[float]:
    """Fetch at so many bytes per second, tell whenever it is due; the instants at which that was."""
    instants, now = [], 0.0
    while now < seconds:
        now += step
        tally.add(done=int(rate * step), fetched=int(rate * step))
        telling.look(now=now)
        if not telling.due_in(LENGTH, now=now):
            telling.told(telling.message(LEASE, now=now), now=now)
            instants.append(now)
    return instants


def gaps(instants: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(instants)]


def test_a_fast_fetch_is_told_every_two_per_cent() -> None:
    tally = Tally(phase="fetch", bytes_total=100 * MB)
    assert 40 <= len(told(tally, Telling(tally, now=0.0), seconds=100, rate=MB)) <= 60


def test_a_very_fast_one_never_more_than_once_a_second() -> None:
    tally = Tally(phase="fetch", bytes_total=100 * MB)
    assert min(gaps(told(tally, Telling(tally, now=0.0), seconds=10, rate=10 * MB))) >= 1


def test_a_slow_one_every_five_seconds() -> None:
    tally = Tally(phase="fetch", bytes_total=10**12)
    assert set(gaps(told(tally, Telling(tally, now=0.0), seconds=60, rate=MB))) == {5.0}


def test_one_that_stands_still_every_third_of_the_lease() -> None:
    tally = Tally(phase="verify", bytes_total=10**12)
    assert told(tally, Telling(tally, now=0.0), seconds=350, rate=0) == [100, 200, 300]


def test_what_an_earlier_attempt_left_is_told_until_it_is_counted_and_never_beyond_the_whole() -> None:
    tally = Tally(phase="plan", bytes_total=100 * MB, bytes_noted=60 * MB)
    telling = Telling(tally, now=0.0)

    def said() -> tuple[int, int, int]:
        message = telling.message(LEASE, now=1.0)
        return message.bytes_done // MB, message.bytes_fetched, message.files_done

    assert (said(), telling.percent) == ((60, 0, 0), 60)
    tally.add(done=20 * MB)
    assert said() == (60, 0, 0), "they are being counted"
    tally.add(done=45 * MB)
    assert said() == (65, 0, 0)
    tally.add(done=-65 * MB)
    tally.add(done=1 * MB, fetched=1)
    assert said() == (1, 1, 0), "what comes again is not here"
    tally.bytes_noted = 200 * MB
    assert (said()[0], telling.percent) == (100, 100)


@pytest.mark.parametrize("change", [{"phase": "publish"}, {"commit": "c" * 40}], ids=["phase", "commit"])
def test_a_new_phase_is_told_within_a_second(change: dict[str, str]) -> None:
    tally = Tally(phase="fetch", bytes_total=10**12)
    telling = Telling(tally, now=0.0)
    assert telling.due_in(LENGTH, now=0.0) == LENGTH / 3
    for name, value in change.items():
        setattr(tally, name, value)
    assert telling.due_in(LENGTH, now=0.0) == timedelta(seconds=1)


def message(tally: Tally, *, seconds: int, done: int = 0, fetched: int = 0, reused: int = 0) -> wire.Progress:
    """What is told after so many seconds in which so much came."""
    telling = Telling(tally, now=0.0)
    for now in range(1, seconds + 1):
        tally.add(done=done, fetched=fetched, reused=reused)
        telling.look(now=float(now))
    return telling.message(LEASE, now=float(seconds))


def test_the_rate_is_that_of_the_last_seconds_and_gives_the_remaining_time() -> None:
    tally = Tally(phase="fetch", bytes_total=100 * MB)
    found = message(tally, seconds=20, done=2 * MB, fetched=2 * MB)
    assert found.bytes_per_second == pytest.approx(2 * MB)
    assert found.eta_seconds == pytest.approx(30)
    assert (found.bytes_total, found.bytes_done, found.bytes_fetched) == (100 * MB, 40 * MB, 40 * MB)


def test_a_line_that_died_has_no_rate_and_no_end() -> None:
    tally = Tally(phase="fetch", bytes_total=100 * MB)
    telling = Telling(tally, now=0.0)
    tally.add(done=MB, fetched=MB)
    for now in range(1, 40):
        telling.look(now=float(now))
    found = telling.message(LEASE, now=40.0)
    assert (found.bytes_per_second, found.eta_seconds) == (0.0, None)


def test_what_came_from_other_snapshots_is_no_speed_of_the_line() -> None:
    tally = Tally(phase="fetch", bytes_total=100 * MB)
    assert message(tally, seconds=5, done=10 * MB, reused=10 * MB).bytes_per_second == 0


def test_reading_again_has_a_rate_too() -> None:
    tally = Tally(phase="verify", bytes_total=100 * MB)
    assert message(tally, seconds=5, done=10 * MB).bytes_per_second == pytest.approx(10 * MB)


def test_what_is_counted_wrongly_for_a_moment_never_leaves_the_bounds_of_the_wire() -> None:
    tally = Tally(phase="fetch", bytes_total=10, files_total=1)
    tally.add(done=-5, fetched=-5, files=-1)
    found = Telling(tally, now=0.0).message(LEASE, now=0.0)
    assert (found.bytes_done, found.bytes_fetched, found.files_done) == (0, 0, 0)
    tally.add(done=100, files=9)
    found = Telling(tally, now=0.0).message(LEASE, now=0.0)
    assert (found.bytes_done, found.files_done) == (10, 1)
    assert Telling(tally, now=0.0).percent == 100


def test_before_the_plan_is_made_there_is_no_per_cent() -> None:
    assert Telling(Tally(), now=0.0).percent == 0
