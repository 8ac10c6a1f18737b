"""Which pieces of a file are here, on their way, or still to be asked for."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

Span = tuple[int, int]
"""First byte, and one after the last."""

_WORTH_SECONDS = 0.5  # a piece that takes longer yet is shared with a connection that has nothing to do
_SEEN_SECONDS = 0.25  # so long it runs until anybody can say how fast


@dataclass(slots=True, eq=False)
class Segment:
    """A piece that one connection brings from its start to its end."""

    start: int
    end: int  # comes nearer when the rest is shared
    at: int  # the next byte to come: all before it are on disk
    taken: bool = False
    until: int = 0  # bytes before it are being read now
    taken_at: float = 0.0
    taken_from: int = 0

    @property
    def here(self) -> bool:
        """Whether all of it is."""
        return self.at >= self.end

    @property
    def rest(self) -> int:
        """Bytes that nobody has begun to read."""
        return self.end - max(self.at, self.until)

    def lasts(self, now: float) -> float:
        """How many seconds its rest takes yet, as far as one can say."""
        ran, came = now - self.taken_at, self.at - self.taken_from
        if ran < _SEEN_SECONDS:
            return 0.0
        return self.rest * ran / came if came else float("inf")


class Segments:
    """All pieces of one file, in order: ``each`` bytes, and from where an earlier run had begun. Its part locks them.

    A terabyte has many thousands; only those between the first gap and the furthest that was begun are ever looked at.
    """

    def __init__(self, size: int, each: int, here: Iterable[Span] = ()) -> None:
        self.size = size
        here = list(here)
        edges = sorted({*range(0, size, max(each, 1)), *(first for first, _ in here if 0 < first < size), size})
        self._all = [Segment(start, end, start) for start, end in pairwise(edges)]
        self._next = 0  # none before it is to be asked for
        self._gap = 0  # all before it are here
        self._begun = 0  # none from it on has a byte
        for first, end in here:
            self._mark(first, end)
        self.left = sum(1 for segment in self._all if not segment.here)  # that are neither here nor taken

    def take(self, now: float = 0.0) -> Segment | None:
        """The next piece to ask for, in order of the file; ``now`` in seconds, as ``share`` has it."""
        while self._next < len(self._all):
            segment = self._all[self._next]
            self._next += 1
            self._begun = max(self._begun, self._next)
            if not segment.taken and not segment.here:
                segment.taken = True
                segment.taken_at, segment.taken_from = now, segment.at
                self.left -= 1
                return segment
        return None

    def give_back(self, segment: Segment) -> None:
        """It did not come whole; it is to be asked for again, from where it stopped."""
        segment.taken = False
        self.left += 1
        self._next = min(self._next, self._place(segment.start))

    def share(self, least: int, now: float) -> bool:
        """Make a piece of its own of the second half of what a running one lacks, of the one that lasts longest.

        Not where it would soon be here anyway, nor where a half would have fewer bytes than ``least``.
        """
        running = [segment for segment in self._all[self._gap : self._begun] if segment.taken]
        enough = [segment for segment in running if segment.rest >= 2 * least]
        longest = max(enough, key=lambda segment: segment.lasts(now), default=None)
        if longest is None or longest.lasts(now) < _WORTH_SECONDS:
            return False
        place, middle = self._place(longest.start), longest.end - longest.rest // 2
        self._all.insert(place + 1, Segment(middle, longest.end, middle))
        longest.end = middle
        self._next = place + 1
        self._begun += 1
        self.left += 1
        return True

    @property
    def reach(self) -> int:
        """How far the file lies on disk without a gap."""
        while self._gap < len(self._all) and self._all[self._gap].here:
            self._gap += 1
        return self._all[self._gap].at if self._gap < len(self._all) else self.size

    @property
    def spans(self) -> list[Span]:
        """What is on disk, as few spans as that takes."""
        found = [(0, reach)] if (reach := self.reach) else []
        for segment in self._all[self._gap : self._begun]:
            if segment.at == segment.start or segment.at <= reach:
                continue
            if found and found[-1][1] == segment.start:
                found[-1] = (found[-1][0], segment.at)
            else:
                found.append((segment.start, segment.at))
        return found

    @property
    def landed(self) -> int:
        """Bytes on disk."""
        return sum(end - first for first, end in self.spans)

    def _mark(self, first: int, end: int) -> None:
        low, high = self._place(first), self._place(min(end, self.size))
        for segment in self._all[low:high]:
            segment.at = max(segment.at, min(end, segment.end))
        self._begun = max(self._begun, high)

    def _place(self, start: int) -> int:
        """Of the first piece that does not start before."""
        return bisect_left(self._all, start, key=lambda segment: segment.start)
