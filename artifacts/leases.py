"""When a lease ends, how long a job that failed pauses, and when its attempts are spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from agent import wire

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=30)
LONGEST_WAIT = timedelta(hours=24)
"""However long a source says to wait."""

MAX_FRUITLESS = 20
"""Claims in a row by new process starts that got no further: whatever kills the agent there will do so again."""

FREE_RETURNS = 3
"""So often in a row a job may be given back without getting further before it pauses: agents are started anew."""

LASTING: frozenset[str] = frozenset(get_args(wire.LastingFailure))
COURSE_POINTS = 120
COURSE_STEP = 2.0  # seconds between two points at the least

Point = Sequence[float]  # epoch seconds, bytes done, bytes per second


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a job whose attempt failed."""

    ends: bool  # failed for good; else it goes back to the queue
    spent: int  # attempts that count against the bound, this one included where it does
    pause: timedelta = timedelta()


def after_failure(code: str, *, spent: int, most: int, retry_after: timedelta | None = None) -> Verdict:
    """What a failed attempt leads to.

    Args:
        code: a ``wire.FailureCode``; one that is not known counts as passing, for it ends after a few attempts anyway.
        spent: attempts that counted before this one.
        most: the bound of attempts.
        retry_after: as the source told; only ``rate_limited`` heeds it.
    """
    if code in LASTING:
        return Verdict(ends=True, spent=spent)
    if code == "rate_limited":
        return Verdict(ends=False, spent=spent, pause=min(max(retry_after or FIRST_PAUSE, FIRST_PAUSE), LONGEST_WAIT))
    now_spent = spent + 1
    if now_spent >= most:
        return Verdict(ends=True, spent=now_spent)
    return Verdict(ends=False, spent=now_spent, pause=timedelta() if code == "lease_lost" else pause(now_spent))


def pause(spent: int) -> timedelta:
    """The pause after the ``spent``-th failed attempt: half a minute, doubled each time, half an hour at most."""
    doublings: int = min(max(spent - 1, 0), 16)
    return min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)


def pause_after_returns(times: int) -> timedelta:
    """The pause of a job that was given back so often in a row and got no further: after a few, as if it had failed."""
    return pause(times - FREE_RETURNS) if times > FREE_RETURNS else timedelta()


def with_point(course: Sequence[Point], point: Point) -> list[Point]:
    """The course with one point more, thinned so that points stand evenly apart; the newest is always shown."""
    points = [*course, point]
    begun, apart = points[0][0], COURSE_STEP
    while point[0] - begun >= apart * (COURSE_POINTS - 1):
        apart *= 2
    thinned: dict[int, Point] = {}
    for one in points:
        thinned.setdefault(int((one[0] - begun) // apart), one)
    kept = list(thinned.values())[: COURSE_POINTS - 1]
    return kept if kept[-1] is point else [*kept, point]
