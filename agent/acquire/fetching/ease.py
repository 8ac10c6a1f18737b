"""Fewer connections where the line is faster than this machine: more of them would only take its cores' time away."""

import os
import time
from collections.abc import Callable

from agent.acquire.line.limits import Limits
from agent.acquire.terms import Tally

_BUSY = 0.5  # of all cores, used by this process: the line waits for us
_IDLE = 0.25  # we wait for the line


class Ease:
    """Says how many connections may bring bytes, from how fast they come and what that costs.

    Not locked: its crew does that.
    """

    def __init__(
        self,
        tally: Tally,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.process_time,
        cores: int | None = None,
    ) -> None:
        self._tally, self._limits = tally, limits
        self._clock, self._used = clock, used
        self._cores = cores or len(os.sched_getaffinity(0))
        self._eased = False
        self._seen_at, self._seen_used, self._seen_bytes = clock(), used(), tally.bytes_fetched

    @property
    def connections(self) -> int:
        """How many at one time, by what was seen last."""
        self._look()
        most = self._limits.connections
        return min(most, self._limits.eased_connections) if self._eased else most

    def _look(self) -> None:
        seconds = self._clock() - self._seen_at
        if seconds < self._limits.ease_every.total_seconds():
            return
        used, brought = self._used(), self._tally.bytes_fetched
        share = (used - self._seen_used) / seconds / self._cores
        rate = (brought - self._seen_bytes) / seconds
        fast = self._limits.fast_bytes_per_second
        if rate >= fast and share >= _BUSY:
            self._eased = True
        elif rate < fast / 2 or share < _IDLE:
            self._eased = False
        self._seen_at, self._seen_used, self._seen_bytes = self._seen_at + seconds, used, brought
