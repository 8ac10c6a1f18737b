"""When the source asks to wait, all connections of the job wait together."""

import threading
import time
from collections.abc import Callable

from agent.acquire.line.faults import Held
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Failed


class Gate:
    """Shut for as long as the source asked; asked too often or for too long, the attempt ends."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._times = 0  # in a row

    def go_through(self, rest: Callable[[float], None]) -> float:
        """Wait while it is shut; gives the instant at which it was open."""
        while (left := self._until - self._clock()) > 0:
            rest(left)
        return self._clock()

    def shut(self, held: Held, asked_at: float) -> None:
        """A request that left at ``asked_at`` was told to wait."""
        with self._lock:
            if asked_at >= self._until:  # not one of several that were on their way together
                self._times += 1
            if held.wait > self._limits.longest_hold or self._times > self._limits.tries:
                raise Failed("rate_limited", held.detail, retry_after=held.wait)
            wait = max(held.wait, self._limits.backoff_floor)
            self._until = max(self._until, self._clock() + wait.total_seconds())

    def worked(self) -> None:
        """A request was answered."""
        self._times = 0
