"""Who waits for too long is cut off: on a clock that the test moves."""

from datetime import timedelta

from agent.acquire.line.faults import Fault, Halted
from agent.acquire.line.watchdog import Watchdog


class Line:
    """Waits since then."""

    def __init__(self, since: float | None) -> None:
        self.since = since
        self.why: Exception | None = None

    def cut(self, why: Exception) -> None:
        self.why = why


def test_a_wait_that_is_too_long_is_cut_off_as_stalled() -> None:
    line = Line(since=100.0)
    dog = Watchdog(timedelta(seconds=60), clock=lambda: 161.0)
    dog.watch(line)
    dog.look()
    assert isinstance(line.why, Fault)
    assert line.why.code == "stalled"


def test_a_shorter_wait_goes_on() -> None:
    line = Line(since=100.0)
    dog = Watchdog(timedelta(seconds=60), clock=lambda: 159.0)
    dog.watch(line)
    dog.look()
    assert line.why is None


def test_who_does_not_wait_is_left_alone() -> None:
    line = Line(since=None)
    dog = Watchdog(timedelta(seconds=60), clock=lambda: 10_000.0)
    dog.watch(line)
    dog.look()
    assert line.why is None


def test_who_is_closed_is_left_alone() -> None:
    line = Line(since=0.0)
    dog = Watchdog(timedelta(seconds=60), clock=lambda: 10_000.0)
    dog.watch(line)
    dog.forget(line)
    dog.look()
    assert line.why is None


def test_when_all_are_cut_off_those_who_come_later_are_too() -> None:
    early, late = Line(since=None), Line(since=None)
    dog = Watchdog(timedelta(seconds=60))
    dog.watch(early)
    dog.cut_all(Halted())
    dog.watch(late)
    assert isinstance(early.why, Halted)
    assert isinstance(late.why, Halted)
