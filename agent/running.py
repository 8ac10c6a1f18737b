"""One job on its own thread, under its lease: what it may do, how far it is, and what is told of its end."""

import errno
import logging
from collections.abc import Callable
from datetime import timedelta
from threading import Condition, Thread
from typing import Protocol

import msgspec

from agent import logs, wire
from agent.acquire.terms import Failed, Notes, Stopped, Tally
from agent.clock import Clock
from agent.lease import Lease, LeasedBrake
from agent.telling import Telling

log = logging.getLogger(__name__)

_LOOK_EVERY_SECONDS = 1.0


class Perform(Protocol):
    """The work itself, as ``acquire.steps`` does it: returns what succeeded, raises ``Failed`` or ``Stopped``.

    ``tell`` returns when the control plane has answered what ``tally`` says; ``still`` raises ``Failed`` where the
    storage root is no longer what was approved.
    """

    def __call__(
        self,
        job: wire.Job,
        *,
        brake: LeasedBrake,
        tally: Tally,
        notes: Notes,
        tell: Callable[[], None],
        still: Callable[[], None],
    ) -> wire.Result: ...


class Running:
    """A job that runs. ``result`` is what shall be told once ``ended``; None where the lease was lost."""

    def __init__(
        self,
        job: wire.Job,
        *,
        sent_at: float,
        perform: Perform,
        still: Callable[[], None],
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self.job = job
        self.lease = Lease(job.lease_id, timedelta(seconds=job.lease_seconds), sent_at=sent_at, clock=clock)
        self.brake = LeasedBrake(self.lease)
        self.tally = Tally()
        self.notes = Notes()
        self.telling = Telling(self.tally, now=clock.monotonic())
        self.ended = False
        self.lost = False  # the control plane said so: nothing more is told
        self.result: wire.Result | None = None
        self._perform = perform
        self._still = still
        self._wake = wake
        self._heard = Condition()
        self._wanted = 0  # how often the job asked to be told
        self._answered = 0
        self._thread = Thread(target=self._top, name="job", daemon=True)

    def start(self) -> None:
        """Begin; RuntimeError when the system gives no more threads."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its thread still runs: a system call may hold it though the brake is pulled."""
        return self._thread.is_alive()

    def join(self, within: timedelta) -> None:
        """Wait for its end, at most so long."""
        self._thread.join(within.total_seconds())

    @property
    def wanted(self) -> int:
        """How often the job asked to be told so far; more than ``answered`` was told: progress is due now."""
        return self._wanted

    @property
    def waits(self) -> bool:
        """Whether the job waits to be told."""
        return self._wanted > self._answered

    def answered(self, wanted: int) -> None:
        """The progress that left when ``wanted`` was so much was answered."""
        with self._heard:
            self._answered = max(self._answered, wanted)
            self._heard.notify_all()

    def lose(self) -> None:
        """The control plane gave the job to somebody else, or knows it no more."""
        self.lost = True
        self.brake.pull("lease_lost")

    def given_up(self) -> wire.Result | None:
        """What is told when the brake is pulled and the thread does not come back."""
        return self._end(lambda: self._stopped(OSError(errno.ETIMEDOUT, "the file system does not answer")))

    def _tell(self) -> None:
        with self._heard:
            self._wanted += 1
            mine = self._wanted
        self._wake()
        with self._heard:
            while self._answered < mine:
                self.brake.check()
                self._heard.wait(_LOOK_EVERY_SECONDS)

    def _notify(self) -> None:
        with self._heard:
            self._heard.notify_all()

    def _top(self) -> None:
        take_back = self.brake.on_pull(self._notify)
        try:
            self.result = self._end(self._work)
        finally:
            take_back()
            self.ended = True
            self._wake()

    def _work(self) -> wire.Result:
        try:
            self._still()
            return self._perform(
                self.job, brake=self.brake, tally=self.tally, notes=self.notes, tell=self._tell, still=self._still
            )
        except (Failed, Stopped):
            raise
        except Exception as error:  # noqa: BLE001  the job's top: whatever it is, the job must not be lost with it
            return self._stopped(error)

    def _stopped(self, error: Exception) -> wire.Result:
        """An error that nobody named; behind a pulled brake it is most likely the brake's doing."""
        self.brake.check()
        log.error("job %s ended unexpectedly", self.job.id, exc_info=error)
        raise Failed("storage_error", f"unexpected: {type(error).__name__}") from error

    def _end(self, work: Callable[[], wire.Result]) -> wire.Result | None:
        """The result of the work, however it ends."""
        try:
            return work()
        except Failed as failed:
            failure = failed.told()
            return self._told("failed", msgspec.structs.replace(failure, detail=logs.told(failure.detail, 1000)))
        except Stopped as stopped:
            if stopped.why == "lease_lost":
                return None
            return self._told("cancelled" if stopped.why == "cancelled" else "released")

    def _told(self, outcome: str, failure: wire.Failure | None = None) -> wire.Result:
        return wire.Result(
            lease_id=self.lease.id,
            outcome=outcome,  # type: ignore[arg-type]  # one of the three above
            commit=self.tally.commit,
            failure=failure,
            quarantined=self.notes.quarantined[: wire.MAX_QUARANTINED],
        )
