"""Tells the control plane of a job: its progress while it runs, and its result until that is answered."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from agent import logs, protocol, wire
from agent.backoff import Backoff
from agent.client import Client
from agent.clock import Clock
from agent.identity import Identity
from agent.protocol import Code
from agent.running import Running
from agent.trouble import Refused, Trouble

log = logging.getLogger(__name__)

_FLOOR, _CAP = timedelta(seconds=1), timedelta(seconds=10)
_RESULT_CAP = _REFUSED_CAP = timedelta(minutes=1)
_NO_LONGER_OURS = (Code.LEASE_LOST, Code.NOT_FOUND)
_OUT_OF_SHAPE = (Code.MALFORMED, Code.INVALID, Code.BODY_TOO_LARGE)
_NEVER_TAKEN = (*_NO_LONGER_OURS, Code.STATE_CONFLICT, *_OUT_OF_SHAPE)


@dataclass(frozen=True)
class Pending:
    """A result that is not answered yet."""

    job: wire.Job
    result: wire.Result
    plain: bool = False  # it only says that the result itself was not taken

    def instead(self, trouble: Trouble) -> "Pending":
        """A failure that fits whatever does not: untold, the job would be given out again and again, at no cost."""
        said = f"The control plane did not take what became of this attempt ({trouble.code}): {trouble}"
        failure = wire.Failure(code="storage_error", detail=logs.told(said, 1000))
        result = wire.Result(lease_id=self.result.lease_id, outcome="failed", failure=failure)
        return Pending(self.job, result, plain=True)


class Reports:
    """Both kinds of word about a job, each with its own pauses. Only the worker's thread calls in."""

    def __init__(self, *, client: Client, identity: Identity, clock: Clock, rng: Random) -> None:
        self._client = client
        self._identity = identity
        self._clock = clock
        self._progress = Backoff(floor=_FLOOR, cap=_CAP, rng=rng)
        self._result = Backoff(floor=_FLOOR, cap=_RESULT_CAP, rng=rng)
        self._progress_at = 0.0  # not before
        self._result_at = 0.0
        self.pending: Pending | None = None

    def afresh(self) -> None:
        """The control plane answers again: whatever waits is tried at once."""
        self._progress_at = self._result_at = 0.0
        self._progress.reset()
        self._result.reset()

    def begin(self) -> None:
        """Another job: the pauses of the one before do not count."""
        self._progress_at = 0.0
        self._progress.reset()

    def keep(self, running: Running) -> None:
        """Keep the lease: tell progress where it is due. A lease that is over stops the job, and so does a cancel."""
        now = self._clock.monotonic()
        if running.lease.over:
            running.brake.pull("lease_lost")
            return
        running.telling.look(now=now)
        due = running.waits or not running.telling.due_in(running.lease.length, now=now)
        credential = self._identity.credential()
        if due and now >= self._progress_at and credential is not None and not running.lost:
            self._tell(running, credential)

    def _tell(self, running: Running, credential: str) -> None:
        now, wanted = self._clock.monotonic(), running.wanted
        message = running.telling.message(running.lease.id, now=now)
        path = protocol.progress(running.job.id)
        try:
            reply = self._client.call(
                "POST", path, bearer=credential, body=message, answer=wire.ProgressReply, within=running.lease.left
            )
        except Trouble as trouble:
            if isinstance(trouble, Refused) and trouble.code in _NO_LONGER_OURS:
                log.warning("the job is no longer ours: %s", trouble, extra=_about(running.job, trouble))
                running.lose()
                return
            if not self._progress.failures:
                log.warning("progress could not be told: %s", trouble, extra=_about(running.job, trouble))
            self._progress_at = now + _pause(self._progress, trouble)
            return
        self._progress.reset()
        running.lease.renew(timedelta(seconds=reply.lease_seconds), sent_at=now)
        running.telling.told(message, now=now)
        running.answered(wanted)
        if reply.cancel:
            running.brake.pull("cancelled")

    def deliver(self) -> Pending | None:
        """Tell the result that waits, where it is time; returns it once it was answered, or will never be taken."""
        pending, now, credential = self.pending, self._clock.monotonic(), self._identity.credential()
        if pending is None or now < self._result_at or credential is None:
            return None
        path = protocol.result(pending.job.id)
        try:
            reply = self._client.call("POST", path, bearer=credential, body=pending.result, answer=wire.ResultReply)
        except Trouble as trouble:
            if not isinstance(trouble, Refused) or trouble.code not in _NEVER_TAKEN:
                if not self._result.failures:
                    log.warning("the result could not be told: %s", trouble, extra=_about(pending.job, trouble))
                self._result_at = now + _pause(self._result, trouble)
                return None
            log.warning("the result is not taken: %s", trouble, extra=_about(pending.job, trouble))
            if trouble.code in _OUT_OF_SHAPE and not pending.plain:
                self.pending = pending.instead(trouble)
                return None
        else:
            log.info("result told", extra={"job_id": str(pending.job.id), "state": reply.state})
        self._result.reset()
        self._result_at = 0.0
        self.pending = None
        return pending

    def deliver_last(self, within: timedelta, over: Client | None = None) -> None:
        """The agent stops: tell what waits, once and shortly, over another connection where the own is not free."""
        credential = self._identity.credential()
        if self.pending is None or credential is None:
            return
        job, result = self.pending.job, self.pending.result
        try:
            (over or self._client).tell(protocol.result(job.id), bearer=credential, body=result, timeout=within)
        except Trouble as trouble:
            log.warning("the result was not heard: %s", trouble, extra=_about(job, trouble))
        else:
            log.info("result told", extra={"job_id": str(job.id), "outcome": result.outcome})

    def due_in(self) -> timedelta | None:
        """Until the result that waits is told; None where none does."""
        if self.pending is None:
            return None
        return timedelta(seconds=max(0.0, self._result_at - self._clock.monotonic()))


def _pause(backoff: Backoff, trouble: Trouble) -> float:
    """Seconds; a refusal that only a person can lift waits until beats are answered again, or for a while."""
    wait = backoff.next(trouble.retry_after)
    return max(wait, _REFUSED_CAP if trouble.parks else wait).total_seconds()


def _about(job: wire.Job, trouble: Trouble) -> dict[str, str]:
    return {"job_id": str(job.id), "code": trouble.code, "request_id": trouble.request_id}
