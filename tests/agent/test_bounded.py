"""Calls that may hang answer within their deadline."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from agent.bounded import Bounded, StuckError

SOON = timedelta(seconds=0.05)
LONG = timedelta(seconds=30)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a call that hangs waits for; open at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_call_gives_what_the_work_returns() -> None:
    assert Bounded("test").call(lambda: 42, LONG) == 42


def test_a_call_raises_what_the_work_raises() -> None:
    def work() -> None:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        Bounded("test").call(work, LONG)


def test_a_call_raises_a_timeout_of_the_work_as_it_is() -> None:
    def work() -> None:
        raise TimeoutError("the server is slow")

    with pytest.raises(TimeoutError, match="the server is slow"):
        Bounded("test").call(work, LONG)


def test_a_call_that_hangs_is_left_at_its_deadline(gate: threading.Event) -> None:
    with pytest.raises(StuckError) as stuck:
        Bounded("test").call(gate.wait, SOON)

    assert stuck.value.waited >= SOON


def test_behind_a_call_that_hangs_nothing_is_queued(gate: threading.Event) -> None:
    bounded, ran = Bounded("test"), threading.Event()
    with pytest.raises(StuckError):
        bounded.call(gate.wait, SOON)

    with pytest.raises(StuckError):
        bounded.call(ran.set, SOON)

    assert not ran.is_set()


def test_a_call_that_came_back_late_makes_room_for_the_next(gate: threading.Event) -> None:
    bounded = Bounded("test")
    with pytest.raises(StuckError):
        bounded.call(gate.wait, SOON)
    gate.set()

    assert bounded.call(lambda: 42, LONG) == 42


def test_a_second_caller_waits_for_a_call_that_is_in_time(gate: threading.Event) -> None:
    bounded, begun, answers = Bounded("test"), threading.Event(), list[int]()

    def slow() -> int:
        begun.set()
        gate.wait()
        return 1

    first = threading.Thread(target=lambda: answers.append(bounded.call(slow, LONG)))
    first.start()
    begun.wait()
    threading.Timer(0.05, gate.set).start()
    answers.append(bounded.call(lambda: 2, LONG))
    first.join()

    assert sorted(answers) == [1, 2]


def test_the_wait_is_told_by_the_clock(gate: threading.Event) -> None:
    now = [100.0]
    bounded = Bounded("test", clock=lambda: now[0])
    with pytest.raises(StuckError):
        bounded.call(gate.wait, SOON)
    now[0] = 140.0

    with pytest.raises(StuckError, match="no answer for 40 s"):
        bounded.call(gate.wait, SOON)


def test_a_system_without_threads_to_give_is_told_and_the_next_call_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bounded = Bounded("test")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            bounded.call(lambda: 42, LONG)

    assert bounded.call(lambda: 42, LONG) == 42
