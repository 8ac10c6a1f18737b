"""Shares the plan's files out among the threads of a fetch, and decides what becomes of each file.

A thread takes something, works, and leaves it. A file's last user, and so nobody beside it, proves the whole file,
begins it anew, or hands it to quarantine.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from agent.acquire.fetching.ease import Ease
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.roster import Roster
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.faults import Halted, Restart
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Failed, Plan, PlannedFile, Tally

_LOOK_AGAIN = timedelta(milliseconds=250)  # whether a resting connection is wanted again, or can share a piece

Mismatch = Callable[[PlannedFile, Path, str], None]


class Crew:
    """What is left to do; every thread asks here for more."""

    def __init__(
        self,
        plan: Plan,
        shelf: Shelf,
        limits: Limits,
        *,
        brake: Brake,
        tally: Tally,
        ease: Ease,
        still: Callable[[], None],
        mismatch: Mismatch,
        halt: Callable[[], None],
    ) -> None:
        self._plan, self._shelf, self._limits = plan, shelf, limits
        self._brake, self._tally = brake, tally
        self._still, self._mismatch, self._halt = still, mismatch, halt
        self._lock = threading.Lock()
        self._piece = threading.Condition(self._lock)  # there may be something to fetch
        self._backlog = threading.Condition(self._lock)  # there may be something to hash
        self._spare = threading.Condition(self._lock)  # there may be use for one more connection
        self._end = threading.Condition(self._lock)
        self._ease = ease
        self._carrying = 0  # threads that bring a piece
        self._roster = Roster(plan, limits)
        self._halted = threading.Event()
        self._fault: BaseException | None = None

    def sign_on(self, pending: list[int], proofs: list[int]) -> None:
        """The files to fetch, and those to prove."""
        self._roster.sign_on(pending, proofs)

    def check(self) -> None:
        """Raises what ends the fetch."""
        if self._halted.is_set():
            raise Halted
        self._brake.check()

    def rest(self, seconds: float) -> None:
        """Wait, unless the fetch ends."""
        self._halted.wait(seconds)
        self.check()

    def fail(self, error: BaseException) -> None:
        """The fetch ends with this; the first one counts."""
        with self._lock:
            self._fault = self._fault or error
        self.stop()

    def stop(self) -> None:
        """Every thread leaves what it does."""
        self._halted.set()
        self._halt()
        with self._lock:
            self._wake()

    def wait(self) -> None:
        """Until all is done or the fetch ends."""
        with self._lock:
            while not self._over:
                self._end.wait()

    def wind_up(self) -> None:
        """After the threads are gone: write down what has landed, and raise what ended the fetch."""
        for part in self._roster.active:
            with suppress(OSError):  # a full disk, which is told already
                part.note()
            part.close()
        self._brake.check()
        if self._fault is not None:
            raise self._fault

    def next_piece(self, mine: Part | None) -> tuple[Part, Segment] | None:
        """Something to fetch: of the same file, of a new one, of the one with most to come, or a half of what another
        connection still has to bring; None: all done."""
        while True:
            with self._lock:
                while not self._over:
                    if self._carrying >= self._ease.connections:
                        self._spare.wait(_LOOK_AGAIN.total_seconds())
                        continue
                    part = self._roster.to_fetch(mine)
                    if part is not None and (segment := part.segments.take(time.monotonic())) is not None:
                        part.users += 1
                        self._carrying += 1
                        return part, segment
                    if (number := self._roster.begin()) is not None:
                        break
                    if not self._roster.share(time.monotonic()):
                        self._piece.wait(_LOOK_AGAIN.total_seconds())
                else:
                    return None
            mine = self._begin(number)

    def next_to_hash(self) -> Part | int | None:
        """A file with bytes to read again, or the number of one to prove; None: all done."""
        with self._lock:
            while not self._over:
                if (number := self._roster.to_prove()) is not None:
                    return number
                if (part := self._roster.to_hash()) is not None:
                    part.users += 1
                    part.hashing = True
                    return part
                self._backlog.wait()
        return None

    def nudge(self, part: Part) -> None:
        """Bytes landed that nobody hashed yet."""
        if part.wants_hashing:
            with self._lock:
                self._backlog.notify()

    def caught_up(self, part: Part) -> None:
        """The hash came nearer to what has landed."""
        if part.wants_bytes:
            with self._lock:
                self._piece.notify()

    def restart(self, part: Part, fault: Restart) -> None:
        """The file begins anew as soon as everybody has left it."""
        if part.begun_anew >= self._limits.tries:
            raise Failed(fault.code, fault.detail)
        with self._lock:
            part.anew = part.anew or fault

    def leave(self, part: Part, segment: Segment | None) -> None:
        """Done with a piece (None: with hashing), whole or not."""
        with self._lock:
            part.users -= 1
            if segment is None:
                part.hashing = False
            else:
                self._carrying -= 1
                if not segment.here:
                    part.segments.give_back(segment)
            alone = part.users == 0 and not self._halted.is_set() and (part.anew is not None or part.hash.whole)
            part.closing = alone
            if not alone:
                self._offer(part)
                return
        if part.anew is not None:
            self._begin_anew(part, part.anew)
        else:
            self._settle(part)

    def proven(self, number: int, right: bool) -> None:
        """A file of an earlier run was read again."""
        file = self._plan.files[number]
        if right:
            self._tally.add(files=1)
        else:
            self._tally.add(done=-file.size)
            self._shelf.drop_whole(file)
        with self._lock:
            self._roster.proven(number, right)
            self._wake()

    @property
    def _over(self) -> bool:
        return self._roster.left == 0 or self._halted.is_set()

    def _wake(self) -> None:
        for waiting in (self._piece, self._spare, self._backlog, self._end):
            waiting.notify_all()

    def _offer(self, part: Part) -> None:
        """Wake those who have something to do with it, and nobody else: there may be thousands of files."""
        if part.segments.left:
            self._piece.notify_all()
        if part.wants_hashing:
            self._backlog.notify()

    def _begin(self, number: int) -> Part:
        self._still()
        part = Part(number, self._plan, self._shelf, self._limits)
        self._tally.add(done=part.open())
        with self._lock:
            part.users += 1
            self._roster.active.append(part)
        self.leave(part, None)
        return part

    def _begin_anew(self, part: Part, fault: Restart) -> None:
        part.ranged = part.ranged and not fault.whole
        self._tally.add(done=-part.begin_anew())
        with self._lock:
            part.anew = None
            part.closing = False
            self._offer(part)

    def _settle(self, part: Part) -> None:
        file = part.file
        if not part.hash.right:
            said = f"{file.path} has the digest {part.hash.hex}, of which the repository says {file.digest}."
            if not part.was_wrong:  # the line's fault, or of what was continued: suspicious only when it comes again
                part.was_wrong = True
                self._begin_anew(part, Restart("verification_failed", said))
                return
            part.close()
            with self._lock:
                self._roster.active.remove(part)
            self._mismatch(file, self._shelf.part_path(part.number), part.hash.hex)
            self._shelf.drop_part(part.number)
            self._tally.add(done=-file.size)
            raise Failed("verification_failed", said)
        part.keep()
        self._tally.add(files=1)
        with self._lock:
            self._roster.done(part)
            if self._over:
                self._wake()
            elif self._roster.may_begin:
                self._piece.notify()
