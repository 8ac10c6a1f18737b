"""What is left of a plan to fetch and to prove: files to begin, files on their way, and how many are to come."""

from collections import deque

from agent.acquire.fetching.parts import Part
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Plan


class Roster:
    """Not locked: its crew does that."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        self._plan = plan
        self._pending: deque[int] = deque()  # files to begin, the largest first
        self._proofs: deque[int] = deque()  # files that an earlier run left as whole
        self._room = limits.open_files
        self.active: list[Part] = []
        self.left = 0

    def sign_on(self, pending: list[int], proofs: list[int]) -> None:
        """The files to fetch, and those to prove."""
        self._pending.extend(sorted(pending, key=lambda number: -self._plan.files[number].size))
        self._proofs.extend(proofs)
        self.left = len(pending) + len(proofs)

    @property
    def may_begin(self) -> bool:
        """Whether another file may be opened."""
        return bool(self._pending) and self._room > 0

    def begin(self) -> int | None:
        """The next file to open; None: there is none, or too many are open."""
        if not self.may_begin:
            return None
        self._room -= 1
        return self._pending.popleft()

    def to_prove(self) -> int | None:
        """A file that an earlier run left as whole."""
        return self._proofs.popleft() if self._proofs else None

    def to_fetch(self, mine: Part | None) -> Part | None:
        """The open file to take the next piece of: the same as before, or the one with most to come, once all others
        are open."""
        ready = [part for part in self.active if part.wants_bytes]
        if mine in ready:
            return mine
        if self.may_begin:
            return None
        return max(ready, key=lambda part: part.segments.left, default=None)

    def share(self, now: float) -> bool:
        """Nothing is left to be taken: whether a piece that runs was divided, so that there is again."""
        return any(part.share(now) for part in self.active)

    def to_hash(self) -> Part | None:
        """An open file with bytes to read again."""
        return next((part for part in self.active if part.wants_hashing), None)

    def done(self, part: Part) -> None:
        """It has its place in the snapshot."""
        self.active.remove(part)
        self._room += 1
        self.left -= 1

    def proven(self, number: int, right: bool) -> None:
        """A file of an earlier run was read again; one that is wrong comes anew."""
        if right:
            self.left -= 1
        else:
            self._pending.append(number)
