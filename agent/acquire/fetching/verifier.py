"""A thread that hashes what did not come in order, and what an earlier run left."""

from os import close

from agent.acquire.disk import digests
from agent.acquire.fetching.crew import Crew
from agent.acquire.fetching.parts import Part
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Failed, Plan


class Verifier:
    """One of a few."""

    def __init__(self, crew: Crew, plan: Plan, shelf: Shelf, *, brake: Brake, limits: Limits) -> None:
        self._crew, self._plan, self._shelf, self._brake = crew, plan, shelf, brake
        self._buffer = memoryview(bytearray(limits.chunk_bytes))

    def run(self) -> None:
        """Until nothing is left to prove."""
        while (work := self._crew.next_to_hash()) is not None:
            if isinstance(work, Part):
                try:
                    self._hash(work)
                finally:
                    self._crew.leave(work, None)
            else:
                self._prove(work)

    def _hash(self, part: Part) -> None:
        try:
            while part.behind and part.anew is None:
                part.hash_on(self._buffer, self._crew.check)
                self._crew.caught_up(part)
        except EOFError:
            said = f"{part.file.path} is shorter on the disk than what was written to it."
            raise Failed("storage_error", said) from None

    def _prove(self, number: int) -> None:
        file = self._plan.files[number]
        fd = self._shelf.open_whole(file)
        right = False
        if fd is not None:
            try:
                right = digests.of(fd, file, brake=self._brake) == file.digest
            finally:
                close(fd)
        self._crew.check()
        self._crew.proven(number, right)
