"""A thread that brings pieces of files, and asks again for what went wrong: bounded, and ever more slowly."""

import time
from datetime import timedelta
from random import Random

from agent.acquire.fetching.crew import Crew
from agent.acquire.fetching.gate import Gate
from agent.acquire.fetching.pace import Pace
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.segments import Segment
from agent.acquire.fetching.writeback import Writeback
from agent.acquire.line import ranges
from agent.acquire.line.faults import Expired, Fault, Held, Restart
from agent.acquire.line.limits import Limits
from agent.acquire.line.redirects import Desk
from agent.acquire.terms import Brake, Failed, Tally
from agent.backoff import Backoff

_WITHIN = timedelta(milliseconds=250)  # bytes of a slow line reach the disk at least so often


class Carrier:
    """One of several; all that it shares with the others is handed in."""

    def __init__(
        self,
        crew: Crew,
        desk: Desk,
        gate: Gate,
        writeback: Writeback,
        *,
        pace: Pace,
        brake: Brake,
        tally: Tally,
        limits: Limits,
    ) -> None:
        self._crew, self._desk, self._gate, self._writeback = crew, desk, gate, writeback
        self._pace, self._brake, self._tally, self._limits = pace, brake, tally, limits
        self._buffer = memoryview(bytearray(limits.chunk_bytes))
        self._rng = Random()  # noqa: S311  spreads waits out

    def run(self) -> None:
        """Until nothing is left to bring."""
        part = None
        try:
            while (piece := self._crew.next_piece(part)) is not None:
                part, segment = piece
                try:
                    self._carry(part, segment)
                finally:
                    self._crew.leave(part, segment)
        finally:
            self._desk.close()

    def _carry(self, part: Part, segment: Segment) -> None:
        limits = self._limits
        backoff = Backoff(floor=limits.backoff_floor, cap=limits.backoff_cap, rng=self._rng)
        fresh = False  # ask the Hub again where the bytes are
        while not segment.here and part.anew is None:
            asked_at = self._gate.go_through(self._crew.rest)
            self._crew.check()
            try:
                self._bring(part, segment, None if fresh else part.address)
            except Held as held:
                self._gate.shut(held, asked_at)
            except Expired:
                fresh = True
            except Restart as fault:
                self._crew.restart(part, fault)
                self._crew.rest(backoff.next().total_seconds() if part.begun_anew else 0)
            except Fault as fault:
                if backoff.failures + 1 >= limits.tries:
                    raise Failed(fault.code, f"{fault.detail} (tried {limits.tries} times)") from None
                fresh = True
                self._crew.rest(backoff.next(fault.retry_after).total_seconds())

    def _bring(self, part: Part, segment: Segment, address: str | None) -> None:
        file = part.file
        begun = segment.at > segment.start
        if begun and not part.ranged:
            raise Restart("source_unavailable", f"{file.path} ended early, and its source cannot continue it.")
        wanted = None if part.single and not begun else (segment.at, segment.end)
        answer, found_at = self._desk.ask(file, address, wanted)
        try:
            ranges.check(answer, file, wanted, part.etag)
            self._gate.worked()
            part.etag = part.etag or ranges.etag(answer)
            part.address = found_at
            noted_at = time.monotonic()
            while not segment.here and part.anew is None:
                self._crew.check()
                room = part.room(segment, self._pace.portion(len(self._buffer)))
                count = answer.fill(self._buffer[:room], _WITHIN)
                if count == 0:
                    raise Fault("source_unavailable", f"{answer.line.host} ended early within {file.path}.")
                self._tally.add(done=count, fetched=count)
                if not part.land(segment, self._buffer[:count]) and segment.start <= part.hash.position:
                    self._crew.nudge(part)
                if time.monotonic() - noted_at > self._limits.note_every.total_seconds():
                    part.note()  # over a slow line a segment takes minutes, which a crash must not cost
                    noted_at = time.monotonic()
                self._pace.take(count, self._brake)
            shared = wanted is not None and segment.end < wanted[1]  # what comes now is another's
            if segment.here and not shared and answer.length is None and answer.fill(self._buffer[:1], _WITHIN):
                raise Restart("source_unavailable", f"{answer.line.host} sends more of {file.path} than planned.")
        finally:
            answer.finish()
        if segment.here and not part.single:
            self._writeback.soon(lambda: part.flush(segment))
            part.note()
