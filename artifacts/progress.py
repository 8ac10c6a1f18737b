"""Hearing how far a job is: the word keeps its lease, and what it says is stored a few times a minute at most."""

from datetime import datetime, timedelta
from typing import Any, get_args
from uuid import UUID

from django.conf import settings
from django.db import transaction

from agent import wire
from agent.protocol import Code
from agent.wire import FieldError
from artifacts import leases, locks, outcomes, pins
from artifacts.models import Job
from nodes.callers import NodeCaller, Refused

STORED_EVERY = timedelta(seconds=2)
"""However often an agent speaks; sooner only where it comes to its next phase, or tells the commit."""

PHASES: tuple[str, ...] = get_args(wire.Phase)


def tell(job_id: UUID, message: wire.Progress, *, by: NodeCaller, now: datetime) -> wire.ProgressReply:
    """Keep the lease, note how far the job is, and say whether it shall stop.

    Raises:
        Refused: ``lease_lost`` where another lease counts, or none; ``invalid`` where the figures contradict each
            other, or the commit the one that the job is pinned to.
    """
    job = Job.objects.filter(pk=job_id, node=by.node_id, state=Job.State.RUNNING, lease_id=message.lease_id).first()
    if job is None:
        raise lost()
    fetched = job.bytes_fetched_before + message.bytes_fetched
    _refuse_unlikely(message, fetched)
    if message.commit and message.commit != job.commit:
        _pin(job_id, message, by, now)
    if _may_wait(job, message, now):
        left = (job.lease_expires_at or now) - now
        return wire.ProgressReply(lease_seconds=left.total_seconds(), cancel=job.cancel_requested_at is not None)
    stored = _under(job_id, message.lease_id, by).update(**_said(job, message, fetched, now))
    if not stored:
        raise lost()
    return wire.ProgressReply(
        lease_seconds=settings.JOB_LEASE.total_seconds(), cancel=job.cancel_requested_at is not None
    )


def lost() -> Refused:
    """The refusal of a word under a lease that does not count."""
    detail = "This lease is over: the job has ended, waits again, or runs under a newer lease. Stop, and claim again."
    return Refused(Code.LEASE_LOST, detail)


def _under(job_id: UUID, lease_id: UUID, by: NodeCaller) -> Any:
    return Job.objects.filter(pk=job_id, node=by.node_id, state=Job.State.RUNNING, lease_id=lease_id)


def _refuse_unlikely(message: wire.Progress, fetched: int) -> None:
    errors = []
    if message.bytes_done > message.bytes_total:
        errors.append(FieldError(field="bytes_done", detail="More bytes are done than there are in all."))
    if message.files_done > message.files_total:
        errors.append(FieldError(field="files_done", detail="More files are done than there are in all."))
    if message.bytes_total > outcomes.MOST_BYTES:
        errors.append(FieldError(field="bytes_total", detail="No snapshot is as large as that."))
    if fetched > outcomes.MOST_FETCHED:
        errors.append(FieldError(field="bytes_fetched", detail="All attempts together fetched more than can be."))
    if errors:
        raise Refused(Code.INVALID, "; ".join(f"{e.field}: {e.detail}" for e in errors), errors=errors)


def _pin(job_id: UUID, message: wire.Progress, by: NodeCaller, now: datetime) -> None:
    """The commit that the revision names, from now on: once, and with its line in the history."""
    with transaction.atomic():
        locks.node(by.node_id)
        job = _under(job_id, message.lease_id, by).select_for_update().first()
        if job is None:
            raise lost()
        locks.change(job, **pins.pin(job, message.commit, by=by, now=now))


def _may_wait(job: Job, message: wire.Progress, now: datetime) -> bool:
    """Whether so little has happened since the last word that was stored that this one need not be.

    The answer then tells what is left of the lease, so that a flood of words costs no writes, and no lease its length.
    """
    if job.progress_at is None or job.lease_expires_at is None or not job.phase:
        return False
    goes_on = message.phase in PHASES and PHASES.index(message.phase) <= PHASES.index(job.phase)
    soon = job.progress_at <= now < job.progress_at + STORED_EVERY
    return goes_on and soon and job.lease_expires_at - now > settings.JOB_LEASE / 2


def _said(job: Job, message: wire.Progress, fetched: int, now: datetime) -> dict[str, Any]:
    point = (round(now.timestamp(), 1), message.bytes_done, round(message.bytes_per_second, 1))
    return {
        "lease_expires_at": now + settings.JOB_LEASE,
        "phase": message.phase,
        "bytes_total": message.bytes_total,
        "bytes_done": message.bytes_done,
        "bytes_fetched": fetched,
        "files_total": message.files_total,
        "files_done": message.files_done,
        "bytes_per_second": message.bytes_per_second,
        "eta_seconds": message.eta_seconds,
        "progress_at": now,
        "course": leases.with_point(job.course, point),
    }
