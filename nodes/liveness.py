"""When a node counts as online, stale or offline: the one place that decides, from deadlines and an instant alone.

::

    (invited) -> offline --beat--> online --stale_at--> stale --offline_at--> offline
                              ^------------- beat ---------'------- beat -------'
    goodbye: any -> offline at once, told apart as a planned stop

A deadline has its own date: a node that falls silent goes stale at ``stale_at``, whenever anybody notices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from agent.protocol import OFFLINE_AFTER_INTERVALS, STALE_AFTER_INTERVALS


class Liveness(StrEnum):
    """Whether a node is heard."""

    ONLINE = "online"
    STALE = "stale"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The instants at which a node that is not heard again will be stale and offline."""

    stale_at: datetime
    offline_at: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """One transition, dated at the instant it was due."""

    to: Liveness
    at: datetime


def deadlines(heard_at: datetime, interval: timedelta) -> Deadlines:
    """The deadlines of a node heard at ``heard_at`` and told to beat every ``interval``."""
    return Deadlines(heard_at + STALE_AFTER_INTERVALS * interval, heard_at + OFFLINE_AFTER_INTERVALS * interval)


def due(stored: Liveness, limits: Deadlines | None, now: datetime) -> Sequence[Step]:
    """The transitions that silence has made due by ``now``, in order: none, stale, offline, or stale and offline."""
    if limits is None or stored is Liveness.OFFLINE:
        return ()
    steps = []
    if stored is Liveness.ONLINE and now >= limits.stale_at:
        steps.append(Step(Liveness.STALE, limits.stale_at))
    if now >= limits.offline_at:
        steps.append(Step(Liveness.OFFLINE, limits.offline_at))
    return steps


def seen_at(stored: Liveness, limits: Deadlines | None, now: datetime) -> Liveness:
    """The liveness to show at ``now``, right also between two sweeps."""
    steps = due(stored, limits, now)
    return steps[-1].to if steps else stored


def granted_interval(fleet: int, *, shortest: timedelta, most_per_second: float) -> timedelta:
    """The interval to grant, so that ``fleet`` nodes together beat at most ``most_per_second`` times a second.

    Whole seconds, so that it changes seldom.
    """
    needed = -(-fleet // most_per_second)
    return max(shortest, timedelta(seconds=needed))
