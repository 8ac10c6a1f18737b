"""Runs calls that may hang (a driver, a dead file server) aside, and answers within a deadline whatever they do."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


class StuckError(Exception):
    """The call has not come back; ``waited`` is how long it has been running already."""

    def __init__(self, waited: timedelta) -> None:
        super().__init__(f"no answer for {waited.total_seconds():.0f} s")
        self.waited = waited


class Bounded:
    """One line to one thing that may hang: a single call at a time, each on a daemon thread.

    A call that passes its deadline is left to itself, since a thread inside a system call cannot be stopped. Until it
    comes back, further calls are refused at once rather than queued behind it.
    """

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._free = threading.Lock()  # held by the call that is running, released by its own thread
        self._since: float | None = None  # when that call began

    def call(self, work: Callable[[], T], within: timedelta) -> T:
        """What ``work`` returns or raises; StuckError when that is not known within the deadline.

        RuntimeError when the system gives no more threads.
        """
        asked = self._clock()
        if not self._free.acquire(timeout=self._patience(within)):
            raise StuckError(self._waited(asked))
        self._since = self._clock()
        answer: Future[T] = Future()
        try:
            threading.Thread(target=self._run, args=(work, answer), name=self._name, daemon=True).start()
        except RuntimeError:
            self._since = None
            self._free.release()
            raise
        try:
            return answer.result(timeout=max(0.0, within.total_seconds() - (self._clock() - asked)))
        except TimeoutError:
            if answer.done():  # it came in at the last moment, or the work itself raised a TimeoutError
                return answer.result()
            raise StuckError(self._waited(asked)) from None

    def _patience(self, within: timedelta) -> float:
        """How long to wait for a call that is running: not at all behind one that has passed this deadline already."""
        since = self._since
        overdue = since is not None and self._clock() - since >= within.total_seconds()
        return 0.0 if overdue else within.total_seconds()

    def _waited(self, asked: float) -> timedelta:
        since = self._since
        return timedelta(seconds=self._clock() - (asked if since is None else since))

    def _run(self, work: Callable[[], T], answer: "Future[T]") -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  handed to the caller, who raises it
            self._done()
            answer.set_exception(error)
        else:
            self._done()
            answer.set_result(result)

    def _done(self) -> None:
        self._since = None
        self._free.release()
