"""The arrows that lead a job out of running or waiting: it ends, or it goes back to the queue; each with its event.

Whoever calls holds the node's row and the job's, in a transaction.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from artifacts import leases, subjects
from artifacts.locks import change
from artifacts.models import Job
from nodes.audit import record, record_uncounted
from nodes.callers import Caller
from nodes.event_types import EventType

_EVENTS = {
    Job.State.SUCCEEDED: EventType.JOB_SUCCEEDED,
    Job.State.FAILED: EventType.JOB_FAILED,
    Job.State.CANCELLED: EventType.JOB_CANCELLED,
}

_LEFT = {"lease_id": None, "lease_expires_at": None, "boot_id": None, "bytes_per_second": 0.0, "eta_seconds": None}
"""What only a running job has."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


def end(
    job: Job,
    state: Job.State,
    *,
    by: Caller,
    now: datetime,
    at: datetime | None = None,
    also: Mapping[str, Any] = NOTHING,
    **told: Any,
) -> Job:
    """The job ends as succeeded, failed or cancelled.

    Args:
        job: its row, held.
        at: when it happened, where that was before now.
        also: further fields of the job to set.
        told: what its event says beside what each says.
    """
    change(job, **_LEFT | {"state": state, "finished_at": now, "not_before": None} | dict(also))
    record_uncounted(_EVENTS[state], by=by, about=subjects.job(job), at=at or now, **about(job), **told)
    return job


def cancel(
    job: Job, *, by: Caller, now: datetime, at: datetime | None = None, also: Mapping[str, Any] = NOTHING, **told: Any
) -> Job:
    """The job ends as cancelled: by whoever asked for it, else by whoever ends it now."""
    also = {"cancelled_by": job.cancelled_by or by.label[:255], **also}
    return end(job, Job.State.CANCELLED, by=by, now=now, at=at, also=also, asked_by=also["cancelled_by"], **told)


def put_back(
    job: Job,
    *,
    by: Caller,
    now: datetime,
    not_before: datetime | None = None,
    at: datetime | None = None,
    also: Mapping[str, Any] = NOTHING,
    counted: bool = True,
    **told: Any,
) -> Job:
    """The job waits again, from ``not_before`` on; ``told`` says why.

    Args:
        job: its row, held.
        counted: against what the node may tell by itself; not so where it costs the job one of its attempts.
    """
    change(job, **_LEFT | {"state": Job.State.QUEUED, "not_before": not_before} | dict(also))
    details = {"attempt": job.attempt, "spent": job.spent, "not_before": not_before}
    told = about(job) | details | told
    tell = record if counted else record_uncounted
    tell(EventType.JOB_PUT_BACK, by=by, about=subjects.job(job), at=at or now, **told)
    return job


def give_back(job: Job, *, by: Caller, now: datetime, why: str) -> Job:
    """The agent lets go of the job, at no cost: it waits again, and pauses where that happens over and over."""
    times = 0 if job.bytes_done > job.bytes_at_claim else job.given_back + 1
    rest = leases.pause_after_returns(times)
    not_before = now + rest if rest else None
    return put_back(job, by=by, now=now, not_before=not_before, also={"given_back": times}, why=why)


def about(job: Job) -> dict[str, Any]:
    """What every event of a job says."""
    return {"job_type": job.type, "repo_id": job.repo_id, "revision": job.revision, "commit": job.commit}


def failure(code: str, detail: str, numbers: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """A failure as a job keeps it and its event tells it."""
    return {"failure_code": code, "failure_detail": detail, "failure_numbers": dict(numbers)}
