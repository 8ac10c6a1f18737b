"""What is told of a running job and when: often enough to be seen and to keep the lease, and never a flood."""

from collections import deque
from datetime import timedelta
from uuid import UUID

from agent import wire
from agent.acquire.terms import Tally

NEVER_MORE_OFTEN_THAN = timedelta(seconds=1)
AT_LEAST_EVERY = timedelta(seconds=5)  # while anything moves
STEP = 0.02  # of all bytes
_WINDOW = timedelta(seconds=15)
_LONGEST_ETA = timedelta(days=3650)


class Telling:
    """Decides when progress is due, and works out rate and remaining time over the last seconds."""

    def __init__(self, tally: Tally, *, now: float) -> None:
        self._tally = tally
        self._told_at = now
        self._told = self._seen()
        self._fetched: deque[tuple[float, int]] = deque([(now, tally.bytes_fetched)])
        self._done: deque[tuple[float, int]] = deque([(now, tally.bytes_done - tally.bytes_reused)])

    def due_in(self, lease: timedelta, *, now: float) -> timedelta:
        """How long nothing need be told, as things stand; a look at least once a second shows whether that changed."""
        since = timedelta(seconds=now - self._told_at)
        seen = self._seen()
        wait = lease / 3
        if seen != self._told:
            wait = min(wait, AT_LEAST_EVERY)
        if self._moved_a_step(seen):
            wait = min(wait, NEVER_MORE_OFTEN_THAN)
        return max(timedelta(), wait - since)

    def look(self, *, now: float) -> None:
        """Take a sample for the rate."""
        for samples, value in (
            (self._fetched, self._tally.bytes_fetched),
            (self._done, self._tally.bytes_done - self._tally.bytes_reused),
        ):
            samples.append((now, value))
            while len(samples) > 2 and samples[1][0] <= now - _WINDOW.total_seconds():
                samples.popleft()

    def message(self, lease_id: UUID, *, now: float) -> wire.Progress:
        """The progress as it stands."""
        self.look(now=now)
        tally = self._tally
        total, done = tally.bytes_total, tally.bytes_here
        rate = _rate(self._fetched) or _rate(self._done)
        return wire.Progress(
            lease_id=lease_id,
            phase=tally.phase,
            commit=tally.commit,
            bytes_total=total,
            bytes_done=done,
            bytes_fetched=max(0, tally.bytes_fetched),
            files_total=tally.files_total,
            files_done=max(0, min(tally.files_done, tally.files_total)),
            bytes_per_second=rate,
            eta_seconds=min((total - done) / rate, _LONGEST_ETA.total_seconds()) if rate and total else None,
        )

    def told(self, message: wire.Progress, *, now: float) -> None:
        """It was answered."""
        self._told_at = now
        self._told = _said(message)

    @property
    def percent(self) -> int:
        """Of all bytes, how many are here; 0 before their number is known."""
        total = self._tally.bytes_total
        return self._tally.bytes_here * 100 // total if total else 0

    def _seen(self) -> tuple[str, str, int, int]:
        tally = self._tally
        return tally.phase, tally.commit, tally.bytes_here, tally.files_done

    def _moved_a_step(self, seen: tuple[str, str, int, int]) -> bool:
        """A change of phase is a step, too."""
        if seen[:2] != self._told[:2]:
            return True
        return abs(seen[2] - self._told[2]) >= max(1, int(self._tally.bytes_total * STEP))


def _said(message: wire.Progress) -> tuple[str, str, int, int]:
    return message.phase, message.commit, message.bytes_done, message.files_done


def _rate(samples: deque[tuple[float, int]]) -> float:
    """Bytes per second between the first sample and the last; 0 where nothing moved forward."""
    (start, before), (end, after) = samples[0], samples[-1]
    return max(0.0, (after - before) / (end - start)) if end > start else 0.0
