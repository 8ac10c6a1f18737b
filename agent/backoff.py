"""How long to wait before the next try: bounded, doubling, and spread out so that a fleet never returns in step."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random

RETRY_AFTER_CAP = timedelta(hours=1)
"""No server may silence an agent for longer than this with one answer."""

STEADY_JITTER = 0.1


class Backoff:
    """Full jitter *after* the cap: the ceiling doubles from ``floor`` to ``cap``, the wait is drawn below it.

    Jitter that is added before the cap is cut off by it: every long-waiting agent would then wait for exactly the cap
    and the whole fleet would come back in one second.
    """

    def __init__(self, *, floor: timedelta, cap: timedelta, rng: Random) -> None:
        self.floor = floor
        self.cap = cap
        self.failures = 0
        self._rng = rng

    def next(self, retry_after: timedelta | None = None) -> timedelta:
        """The wait after one more failure; what the server asked for is a floor that the jitter comes on top of."""
        ceiling = min(self.cap, self.floor * (1 << min(self.failures, 30)))
        self.failures += 1
        asked = min(retry_after, RETRY_AFTER_CAP) if retry_after is not None else timedelta()
        return asked + ceiling * self._rng.random()

    def reset(self) -> None:
        """Something worked: the next failure starts from the floor again."""
        self.failures = 0


def steady(interval: timedelta, rng: Random) -> timedelta:
    """The told interval, ±10 %, so that agents which fell into step drift apart again."""
    return interval * rng.uniform(1 - STEADY_JITTER, 1 + STEADY_JITTER)


def first_gap(interval: timedelta, rng: Random) -> timedelta:
    """The gap after the very first beat: a random phase, so that a rack powered on together does not beat together."""
    return interval * rng.uniform(STEADY_JITTER, 1)


def parse_retry_after(header: str | None, *, now: datetime) -> timedelta | None:
    """What ``Retry-After`` asks for, as seconds or as an HTTP date; None where it is absent or unreadable."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), RETRY_AFTER_CAP)
    moment = parse_date(text)
    return None if moment is None else min(max(moment - now, timedelta()), RETRY_AFTER_CAP)


def parse_date(header: str) -> datetime | None:
    """What an HTTP date says, aware; None where it is absent or unreadable: who wrote it may have meant no good."""
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError, TypeError, LookupError):  # of the year, of the zone; of texts of odd pieces
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
