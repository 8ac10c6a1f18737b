"""The storage root that a job works in, held open: what is moved or mounted in its place later is never met.

The folder is opened first and looked at then, so that the one that was found right is the one that is worked in. A look
goes by the root's path, as everybody else does, and tells where another folder stands there now.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from agent.acquire.terms import Failed

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_THE_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # the volume may be a link; the look says which links may be
LOOK_EVERY = timedelta(seconds=1)


@dataclass
class Held:
    """A root and its descriptor. ``look`` raises ``Failed`` where the path does not lead to what was approved."""

    root: Path
    fd: int
    look: Callable[[], None]
    every: timedelta = LOOK_EVERY
    clock: Callable[[], float] = time.monotonic
    _looked_at: float = float("-inf")

    def still(self) -> None:
        """Look, but not for each of a thousand files that are begun within a second."""
        if self.clock() - self._looked_at >= self.every.total_seconds():
            self.check()

    def check(self) -> None:
        """Look now."""
        Context().run(self.look)  # which sees what everybody sees
        if not os.path.samestat(os.stat(self.root), os.fstat(self.fd)):
            raise Failed(
                "root_unverified",
                "Another folder has taken the storage root's place since the job began; nothing was written to it. "
                "Look at what was mounted or moved there.",
            )
        self._looked_at = self.clock()

    def outrank(self) -> None:
        """Look once more before any end of the job is told: a root that is another one now is what must be told.

        One that does not answer in time says nothing about what was done in it.
        """
        try:
            self.check()
        except OSError as error:
            said = f"The storage root cannot be looked at any more ({error.strerror}). Look at its disk and its mount."
            raise Failed("root_unverified", said) from error
        except Failed as failed:
            if failed.code == "root_unverified":
                raise


_held: ContextVar[Held | None] = ContextVar("held", default=None)
"""Of this thread's job."""


@contextmanager
def holding(root: Path, look: Callable[[], None], *, every: timedelta = LOOK_EVERY) -> Iterator[Held]:
    """Hold the root; what opens it or a folder in it meanwhile, gets to this very one."""
    try:
        fd = os.open(root, _THE_ROOT)
    except OSError as error:
        look()  # says it better
        raise Failed("storage_error", f"The storage root cannot be opened: {error.strerror}.") from error
    held = Held(root, fd, look, every)
    before = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(before)
        held.fd = -1  # a thread that comes back late must not meet whoever has the number next
        os.close(fd)


def opened(folder: Path) -> int:
    """A descriptor of the folder; in a held root it is reached from there, name by name and through no link."""
    held = _held.get()
    if held is None or not folder.is_relative_to(held.root):
        return os.open(folder, FOLDER)
    with descent(held.fd, folder.relative_to(held.root).parts) as fd:
        return os.open(".", FOLDER, dir_fd=fd)  # anew, so that nobody's listing moves another's


@contextmanager
def descent(root: int, names: tuple[str, ...] | list[str]) -> Iterator[int]:
    """A descriptor of the folder that these names lead to."""
    fd = os.dup(root)
    try:
        for name in names:
            below = os.open(name, FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)
