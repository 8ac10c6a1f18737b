"""Which pieces of a file are here, on their way, or still to be asked for."""

from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]
"""First byte, and one after the last."""


@dataclass(slots=True, eq=False)
class Segment:
    """A piece that one connection brings from its start to its end."""

    start: int
    end: int
    at: int  # the next byte to come: all before it are on disk
    taken: bool = False

    @property
    def here(self) -> bool:
        """Whether all of it is."""
        return self.at >= self.end


class Segments:
    """All pieces of one file, in order. Not locked: its part does that.

    A terabyte has many thousands; only those between the first gap and the furthest that was begun are ever looked at.
    """

    def __init__(self, size: int, each: int, here: Iterable[Span] = ()) -> None:
        self.size = size
        self._each = max(each, 1)
        self._all = [Segment(at, min(at + self._each, size), at) for at in range(0, size, self._each)]
        self._next = 0  # none before it is to be asked for
        self._gap = 0  # all before it are here
        self._begun = 0  # none from it on has a byte
        for first, end in here:
            self._mark(first, end)
        self.left = sum(1 for segment in self._all if not segment.here)  # that are neither here nor taken

    def take(self) -> Segment | None:
        """The next piece to ask for, in order of the file."""
        while self._next < len(self._all):
            segment = self._all[self._next]
            self._next += 1
            self._begun = max(self._begun, self._next)
            if not segment.taken and not segment.here:
                segment.taken = True
                self.left -= 1
                return segment
        return None

    def give_back(self, segment: Segment) -> None:
        """It did not come whole; it is to be asked for again, from where it stopped."""
        segment.taken = False
        self.left += 1
        self._next = min(self._next, segment.start // self._each)

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
        low, high = first // self._each, -(-min(end, self.size) // self._each)
        for segment in self._all[low:high]:
            if first <= segment.at < end:
                segment.at = min(end, segment.end)
        self._begun = max(self._begun, high)
