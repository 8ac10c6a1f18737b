"""Fewer connections where the line is faster than this machine: more of them would only take its cores' time away."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.acquire.line.limits import Limits
from agent.acquire.terms import Tally

_BUSY = 0.5  # of all cores, used by this process: the line may be waiting for us
_IDLE = 0.25  # we wait for the line
_AS_FAST = 0.85  # of the bytes before: what half of the connections must bring to be enough
_LOOKS = 2  # until that is judged: those that were on their way count in the first
_REST_SECONDS = 10.0  # after half of them were not enough


@dataclass(frozen=True, slots=True)
class _Trial:
    """Half of the connections are tried."""

    connections: int  # that there were
    rate: float  # that they brought, bytes per second
    looks: int = 0


class Ease:
    """Says how many connections may bring bytes, from how fast they come and what that costs.

    Where this machine is busy it tries half of them, and half of those, for as long as no less comes. Not locked: its
    crew does that.
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
        self._connections = limits.connections
        self._trial: _Trial | None = None
        self._again_at = float("-inf")
        self._seen_at, self._seen_used, self._seen_bytes = clock(), used(), tally.bytes_fetched

    @property
    def connections(self) -> int:
        """How many at one time, by what was seen last."""
        seconds = self._clock() - self._seen_at
        if seconds >= self._limits.ease_every.total_seconds():
            used, brought = self._used(), self._tally.bytes_fetched
            share = (used - self._seen_used) / seconds / self._cores
            rate = (brought - self._seen_bytes) / seconds
            self._seen_at, self._seen_used, self._seen_bytes = self._seen_at + seconds, used, brought
            self._weigh(rate, share)
        return self._connections

    def _weigh(self, rate: float, share: float) -> None:
        fast = self._limits.fast_bytes_per_second
        if rate < fast / 2 or share < _IDLE:
            if self._trial is not None:  # it ends so; or else the next fast moment would begin it anew, over and over
                self._again_at = self._seen_at + _REST_SECONDS
            self._connections, self._trial = self._limits.connections, None
        elif self._trial is not None:
            self._judge(self._trial, rate)
        elif rate >= fast and share >= _BUSY and self._seen_at >= self._again_at:
            fewer = max(self._connections // 2, self._limits.eased_connections)
            if fewer < self._connections:
                self._trial = _Trial(self._connections, rate)
                self._connections = fewer

    def _judge(self, trial: _Trial, rate: float) -> None:
        if trial.looks + 1 < _LOOKS:
            self._trial = _Trial(trial.connections, trial.rate, trial.looks + 1)
            return
        self._trial = None
        if rate < trial.rate * _AS_FAST:  # a line of its own for each was worth its price
            self._connections = trial.connections
            self._again_at = self._seen_at + _REST_SECONDS
