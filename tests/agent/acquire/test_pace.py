"""The bandwidth limit: counted on a clock that the test moves."""

import threading

import pytest

from agent.acquire.fetching.pace import SLOWEST, Pace
from agent.acquire.terms import Brake, Stopped

MEGABYTE = 1_000_000


class Watch:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.limit: float | None = 10.0 * MEGABYTE
        self.pace = Pace(lambda: self.limit, clock=lambda: self.now, wait=self.wait)

    def wait(self, brake: Brake, seconds: float) -> None:
        self.now += seconds

    def seconds_for(self, total: int) -> float:
        began, brake = self.now, Brake()
        left = total
        while left:
            count = min(left, self.pace.portion(MEGABYTE))
            self.pace.take(count, brake)
            left -= count
        return self.now - began


def test_bytes_come_in_as_fast_as_the_limit_says() -> None:
    assert Watch().seconds_for(100 * MEGABYTE) == pytest.approx(10, rel=0.05)


def test_without_a_limit_nothing_waits() -> None:
    watch = Watch()
    watch.limit = None
    assert watch.seconds_for(100 * MEGABYTE) == 0


def test_an_idle_hour_saves_up_no_more_than_a_moment() -> None:
    watch = Watch()
    watch.seconds_for(MEGABYTE)
    watch.now += 3600
    assert watch.seconds_for(100 * MEGABYTE) == pytest.approx(10, rel=0.05)


def test_a_limit_that_changes_counts_within_a_second() -> None:
    """Quiet hours end in the middle of a file."""
    watch = Watch()
    watch.limit = 0.1 * MEGABYTE
    watch.seconds_for(MEGABYTE)
    watch.limit = None
    assert watch.seconds_for(100 * MEGABYTE) <= 1.2


def test_a_limit_that_begins_counts_within_a_second() -> None:
    watch = Watch()
    watch.limit = None
    watch.seconds_for(MEGABYTE)
    watch.limit = 0.1 * MEGABYTE
    watch.now += 1
    assert watch.seconds_for(MEGABYTE) == pytest.approx(10, rel=0.05)


def test_under_a_small_limit_no_single_read_takes_more_than_a_fraction_of_a_second() -> None:
    watch = Watch()
    watch.limit = 80_000
    assert watch.pace.portion(MEGABYTE) == 10_000


def test_a_limit_near_nothing_still_moves() -> None:
    watch = Watch()
    watch.limit = 0
    assert watch.seconds_for(int(10 * SLOWEST)) == pytest.approx(10, rel=0.1)


def test_all_threads_together_stay_under_the_limit() -> None:
    """On the real clock, for a tenth of a second beyond what may be saved up."""
    pace, brake = Pace(lambda: 10.0 * MEGABYTE), Brake()
    counted = []

    def drink() -> None:
        for _ in range(10):
            pace.take(100_000, brake)
            counted.append(100_000)

    threads = [threading.Thread(target=drink) for _ in range(4)]
    for thread in threads:
        thread.start()
    brake.pulled.wait(0.1)
    early = sum(counted)
    for thread in threads:
        thread.join()
    assert sum(counted) == 4 * MEGABYTE
    assert early <= 0.4 * 10 * MEGABYTE


def test_a_pulled_brake_ends_the_wait() -> None:
    pace, brake = Pace(lambda: SLOWEST), Brake()
    threading.Timer(0.05, brake.pull, ["cancelled"]).start()
    with pytest.raises(Stopped):
        pace.take(3600 * int(SLOWEST), brake)
