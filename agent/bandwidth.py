"""How fast models may be fetched: a limit for all hours, and others for windows of the day, by the local clock."""

import re
from dataclasses import dataclass
from datetime import datetime, time

from agent.variables import Variables

LIMIT = "MODELFORGE_AGENT_BANDWIDTH_LIMIT"
QUIET_HOURS = "MODELFORGE_AGENT_QUIET_HOURS"
SLOWEST_BYTES = 100_000
"""A slower fetch could not be told from one that stalls."""
_FASTEST_BYTES = 10**15
_MOST_WINDOWS = 16
_WINDOW = re.compile(r"(\d{1,2}:\d{2})\s*-\s*(\d{1,2}:\d{2})\s*=\s*([A-Za-z0-9.]+)(?:/s)?")
_NO_LIMIT = ("none", "unlimited")
_FORM = "must be windows of the day such as 08:00-18:00=10MB,22:00-06:00=none (local time, bytes per second)."


@dataclass(frozen=True)
class Window:
    """A part of each day, by the local clock, and what holds in it; it may reach over midnight."""

    start: time
    end: time
    bytes_per_second: int | None  # None: no limit

    def holds(self, clock: time) -> bool:
        """Whether that time of day lies in it; its end does not."""
        if self.start < self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end


@dataclass(frozen=True)
class Bandwidth:
    """The limit of each hour: that of the first window that holds, else the one for all hours."""

    bytes_per_second: int | None = None  # None: no limit
    windows: tuple[Window, ...] = ()

    def at(self, now: datetime) -> int | None:
        """Bytes per second at that instant; None: no limit. ``now`` is aware; the local zone is that of TZ."""
        clock = now.astimezone().time()
        for window in self.windows:
            if window.holds(clock):
                return window.bytes_per_second
        return self.bytes_per_second


def read(variables: Variables) -> Bandwidth:
    """The limits as the environment describes them; faults land in ``variables``."""
    text = variables.text(LIMIT).removesuffix("/s")
    limit = None
    if text.lower() not in ("", *_NO_LIMIT):
        limit = variables.size(LIMIT, text, low=SLOWEST_BYTES, high=_FASTEST_BYTES)
    return Bandwidth(limit, _windows(variables))


def _windows(variables: Variables) -> tuple[Window, ...]:
    text = variables.text(QUIET_HOURS, longest=1024)
    pieces = [piece.strip() for piece in text.split(",")] if text else []
    if len(pieces) > _MOST_WINDOWS:
        variables.fault(QUIET_HOURS, f"holds {len(pieces)} windows; write at most {_MOST_WINDOWS}.")
        return ()
    windows = []
    for piece in pieces:
        window = _window(variables, piece)
        if window is None:
            return ()
        windows.append(window)
    return tuple(windows)


def _window(variables: Variables, piece: str) -> Window | None:
    found = _WINDOW.fullmatch(piece)
    start, end = (_clock(found[1]), _clock(found[2])) if found else (None, None)
    if found is None or start is None or end is None or start == end:
        variables.fault(QUIET_HOURS, _FORM)
        return None
    if found[3].lower() in _NO_LIMIT:
        return Window(start, end, None)
    return Window(start, end, variables.size(QUIET_HOURS, found[3], low=SLOWEST_BYTES, high=_FASTEST_BYTES))


def _clock(text: str) -> time | None:
    """A time of day; 24:00 is midnight, as people write the end of a day."""
    hour, minute = (int(part) for part in text.split(":"))
    if (hour, minute) == (24, 0):
        return time(0, 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None
