"""Jobs for tests of a worker: one that runs until it is told to end, and one that does not hear."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent import wire
from agent.acquire.terms import Brake, Failed, Notes, Stopped, Tally
from tests.agent.working import COMMIT
from tests.parts.ports import until


class Script:
    """A job that runs until the test or its brake ends it, and counts what the test says."""

    def __init__(self) -> None:
        self.started, self.finish = threading.Event(), threading.Event()
        self.ended_by: BaseException | None = None
        self.tally = Tally()
        self.brake: Brake | None = None
        self.told = 0
        self.tell_first = False
        self.fail: Exception | None = None

    @property
    def running(self) -> bool:
        """Whether nothing ended it yet."""
        return self.ended_by is None

    def stopped(self) -> str:
        """Wait until its brake ended it; why."""
        until(lambda: self.ended_by, "the job stops", every=0.005)
        assert isinstance(self.ended_by, Stopped)
        return self.ended_by.why

    def __call__(
        self,
        *,
        job: wire.Job,
        brake: Brake,
        tally: Tally,
        notes: Notes,
        tell: Callable[[], None],
        still: Callable[[], None],
    ) -> None:
        self.tally, self.brake = tally, brake
        tally.commit = COMMIT
        try:
            if self.tell_first:
                self.started.set()
                tell()
                self.told += 1
            self.started.set()
            while not self.finish.wait(0.005):
                brake.check()
            if self.fail:
                raise self.fail
        except BaseException as error:
            self.ended_by = error
            raise


class Stuck:
    """A job that sits in a system call: it hears of its brake only when the test lets go."""

    def __init__(self) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()

    def __call__(self, *, brake: Brake, **_: Any) -> None:
        self.started.set()
        self.let_go.wait(20)
        with suppress(Failed):
            brake.check()
