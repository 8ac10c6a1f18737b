"""The agent's two clocks: the wall clock for dates, and the monotonic one for every wait and deadline."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the loops ask for the time; tests pass their own."""

    def now(self) -> datetime:
        """The wall clock as aware UTC: data for people and for the wire, never for a wait."""

    def monotonic(self) -> float:
        """Seconds that never step back; on Linux the same for every process since the machine booted."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
