"""A file on its way: its pieces, its bytes on disk, its hash, and what is known about it after a crash."""

import os
import threading
from collections.abc import Callable

from agent.acquire.fetching import writeback
from agent.acquire.fetching.inorder import InOrder
from agent.acquire.fetching.segments import Segment, Segments
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.faults import Restart
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Plan, PlannedFile


class Part:
    """One file of the plan, brought by several connections and hashed by whoever is at hand."""

    def __init__(self, number: int, plan: Plan, shelf: Shelf, limits: Limits) -> None:
        self.number = number
        self.file: PlannedFile = plan.files[number]
        self.address: str | None = None  # signed, where the Hub sent us; good for more than one piece
        self.etag = ""
        self.ranged = True  # as long as nobody said no
        self.begun_anew = 0
        self.was_wrong = False  # it came whole once, and its digest was another
        # The crew's, under its lock:
        self.users = 0  # threads that are at it
        self.hashing = False  # one of them reads it again
        self.anew: Restart | None = None  # it begins anew once they have left
        self.closing = False  # whoever left last decides what becomes of it
        self._shelf = shelf
        self._limits = limits
        self._lock = threading.Lock()
        self._noting = threading.Lock()  # held while the disk is written to, as the other must not be
        self._fd = -1
        self.hash = InOrder(self.file)
        self.segments = Segments(self.file.size, limits.segment_bytes)
        self._restored = 0  # before this byte lies what an earlier run left
        self._allowed = self.file.size  # bytes that may lie here without being hashed

    @property
    def single(self) -> bool:
        """Whether it comes in one piece, about which little is noted while it comes."""
        return self.file.size <= self._limits.segment_bytes or not self.ranged

    def open(self) -> int:
        """Begin, or go on where an earlier run ended; gives the bytes that are here already."""
        self._fd = self._shelf.open_part(self.number)
        known = self._shelf.known(self.number, self._fd)
        if known is None or not known.spans:
            self._shelf.forget(self.number)
            os.ftruncate(self._fd, 0)
            return 0
        self.etag = known.etag
        self._restored = known.spans[-1][1]
        self.segments = Segments(self.file.size, self._limits.segment_bytes, known.spans)
        return self.segments.landed

    def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def room(self, segment: Segment, most: int) -> int:
        """How many bytes of the piece to read next. Nobody else reads those."""
        with self._lock:
            count = min(most, segment.end - segment.at)
            segment.until = segment.at + count
        return count

    def share(self, now: float) -> bool:
        """Let a connection that has nothing to do take a half of what another one still has to bring."""
        if self.single or self.segments.left or self.closing or self.anew:
            return False
        with self._lock:
            return self.segments.share(self._limits.share_bytes, now)

    def land(self, segment: Segment, view: memoryview) -> bool:
        """Bytes of a piece came: onto the disk first, then into the hash if they are next; whether they were."""
        offset, written = segment.at, 0
        while written < len(view):
            written += os.pwrite(self._fd, view[written:], offset + written)
        segment.at = offset + len(view)
        return self.hash.feed(offset, view)

    def hash_on(self, buffer: memoryview, check: Callable[[], None]) -> None:
        """Hash what lies here in order and is not hashed yet, at most a piece."""
        until = min(self._reach(), self.hash.position + self._limits.segment_bytes)
        self.hash.catch_up(self._fd, until, buffer, check)

    @property
    def wants_bytes(self) -> bool:
        """Whether another piece of it may be fetched now.

        On a line faster than a core can hash, more connections would only take its time away. What an earlier run left
        is hashed beside whatever comes; what has piled up meanwhile may stay, and shrinks.
        """
        if not self.segments.left or self.closing or self.anew:
            return False
        if self.hash.position < self._restored:
            return True
        with self._lock:
            ahead = self.segments.landed - self.hash.position
        self._allowed = max(self._limits.ahead_bytes, min(self._allowed, ahead + self._limits.segment_bytes))
        return ahead < self._allowed

    @property
    def wants_hashing(self) -> bool:
        """Whether enough lies here to be read again; a little is left to the thread that brings the next bytes."""
        if self.hashing or self.closing or self.anew:
            return False
        behind = self.behind
        return behind > self._limits.chunk_bytes or (behind > 0 and self.segments.left == 0 and self.users == 0)

    @property
    def behind(self) -> int:
        """Bytes that lie in order and are not hashed."""
        return self._reach() - self.hash.position

    def note(self) -> None:
        """Write down what has landed, so that it need not come again."""
        with self._noting:
            with self._lock:
                spans = self.segments.spans
            if spans and self.ranged and self.anew is None:
                self._shelf.note(self.number, self.etag, spans)

    def flush(self, segment: Segment) -> None:
        """A piece is here; the disk may begin with it while others come."""
        writeback.begin(self._fd, segment.start, segment.end - segment.start)

    def begin_anew(self) -> int:
        """From the first byte, nobody else being at it; gives the bytes that this throws away."""
        lost = self.segments.landed
        self._shelf.forget(self.number)
        os.ftruncate(self._fd, 0)
        self.address, self.etag = None, ""
        self.begun_anew += 1
        self._restored, self._allowed = 0, self._limits.ahead_bytes
        self.hash = InOrder(self.file)
        each = self._limits.segment_bytes if self.ranged else self.file.size
        self.segments = Segments(self.file.size, each)
        return lost

    def keep(self) -> None:
        """It is proven: it takes its place in the snapshot."""
        self.close()
        self._shelf.keep(self.number)

    def _reach(self) -> int:
        with self._lock:
            return self.segments.reach
