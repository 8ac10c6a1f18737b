"""How fast bytes may come in: one limit for all connections of a job, read anew while it runs."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta

from agent.acquire.terms import Brake

SLOWEST = 1024.0
"""Bytes per second: a lower limit would look like a dead line to both ends."""

_BURST = timedelta(milliseconds=250)  # what an idle moment may save up
_LOOK_AGAIN = timedelta(seconds=1)  # quiet hours begin and end so exactly
_PORTIONS = 8.0  # of a second's bytes: so no thread books far ahead of the others


class Pace:
    """A bucket that all threads drink from; ``limit`` tells bytes per second, or None for no limit."""

    def __init__(
        self,
        limit: Callable[[], float | None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[Brake, float], object] = lambda brake, seconds: brake.pulled.wait(seconds),
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._rate: float | None = None
        self._look_at = float("-inf")
        self._free_at = float("-inf")

    def portion(self, most: int) -> int:
        """How many bytes to ask for at once, at most ``most``."""
        rate = self._now()
        return most if rate is None else min(most, max(512, int(rate / _PORTIONS)))

    def take(self, count: int, brake: Brake) -> None:
        """Wait until ``count`` more bytes fit under the limit; raises what the brake says."""
        rate = self._now()
        if rate is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, self._clock() - _BURST.total_seconds()) + count / rate
            due = self._free_at
        while (left := due - self._clock()) > 0:
            self._wait(brake, left)
            brake.check()

    def _now(self) -> float | None:
        if (now := self._clock()) >= self._look_at:
            told = self._limit()
            self._rate = None if told is None else max(told, SLOWEST)
            self._look_at = now + _LOOK_AGAIN.total_seconds()
        return self._rate
