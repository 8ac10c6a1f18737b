"""Ends waits that nothing else ends: a read that brings no byte is cut off from outside."""

import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Protocol

from agent.acquire.line.faults import Fault


class Watched(Protocol):
    """Something that waits for the other side, and since when."""

    since: float | None  # monotonic; None: it does not wait

    def cut(self, why: Exception) -> None:
        """End the wait; who waited gets ``why``."""


class Watchdog:
    """Looks at all connections of a fetch from a thread of its own."""

    def __init__(self, stall: timedelta, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall = stall
        self._clock = clock
        self._lock = threading.Lock()
        self._watched: set[Watched] = set()
        self._over = threading.Event()
        self._why: Exception | None = None

    def watch(self, line: Watched) -> None:
        """From now on; one that comes after all were cut is cut at once."""
        with self._lock:
            self._watched.add(line)
            why = self._why
        if why is not None:
            line.cut(why)

    def forget(self, line: Watched) -> None:
        """It is closed."""
        with self._lock:
            self._watched.discard(line)

    def look(self) -> None:
        """Cut off whoever has waited for too long."""
        too_long = self._clock() - self._stall.total_seconds()
        for line in self._all():
            since = line.since
            if since is not None and since < too_long:
                line.cut(Fault("stalled", f"No byte came for {self._stall.total_seconds():g} s."))

    def cut_all(self, why: Exception) -> None:
        """End every wait, now and from now on."""
        with self._lock:
            self._why = why
        for line in self._all():
            line.cut(why)

    def start(self) -> None:
        """Look again and again until ``stop``."""
        threading.Thread(target=self._run, name="fetch-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _all(self) -> Iterable[Watched]:
        with self._lock:
            return list(self._watched)

    def _run(self) -> None:
        every = min(1.0, self._stall.total_seconds() / 4)
        while not self._over.wait(every):
            self.look()
