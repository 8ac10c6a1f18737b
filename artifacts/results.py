"""Hearing how a job ended: it counts once, under the lease that the job runs under, be that formally over or not."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from agent import wire
from artifacts import endings, leases, locks, outcomes, pins, quarantine
from artifacts.models import Job, StorageRoot
from artifacts.progress import lost
from nodes import refusals
from nodes.callers import NodeCaller
from nodes.models import Node


def finish(job_id: UUID, message: wire.Result, *, by: NodeCaller, now: datetime) -> wire.ResultReply:
    """Take a job's result; told again, it changes nothing, and says where the job stands.

    Raises:
        Refused: ``lease_lost`` where another lease counts, or none; ``invalid`` where the result does not fit the
            order; ``node_disabled`` or ``node_retired`` where an operator was faster.
    """
    with transaction.atomic():
        node = locks.node(by.node_id)
        forbidden = refusals.forbidden(node)
        if forbidden is None:
            job = _held(job_id, by)
            if job.answered_lease_id != message.lease_id:
                _take(job, message, by, now)
                _call_again(node, now)
    if forbidden is not None:
        raise refusals.note(by, forbidden, now=now)
    return wire.ResultReply(state=job.state)


def _held(job_id: UUID, by: NodeCaller) -> Job:
    found = Job.objects.select_for_update(of=("self",)).select_related("root", "artifact")
    job = found.filter(pk=job_id, node=by.node_id).first()
    if job is None:
        raise lost()
    return job


def _take(job: Job, message: wire.Result, by: NodeCaller, now: datetime) -> None:
    if job.state != Job.State.RUNNING or job.lease_id != message.lease_id:
        raise lost()
    also = pins.pin(job, message.commit, by=by, now=now) | {"answered_lease_id": message.lease_id}
    locks.change(job, **also)
    quarantine.keep(job, message.quarantined, by=by, now=now)
    match message.outcome:
        case "succeeded":
            outcomes.succeed(job, message, by=by, now=now)
        case "failed":
            _fail(job, message, by, now)
        case "cancelled" | "released":
            _stop(job, message.outcome, by, now)


def _stop(job: Job, outcome: str, by: NodeCaller, now: datetime) -> None:
    """Stopping is not failing: the job is cancelled where somebody asked for that, else another attempt may go on."""
    if job.cancel_requested_at is not None:
        endings.cancel(job, by=by, now=now)
    else:
        endings.give_back(job, by=by, now=now, why=outcome)


def _fail(job: Job, message: wire.Result, by: NodeCaller, now: datetime) -> None:
    """A lasting failure ends the job; a passing one puts it back until its attempts are spent."""
    failure = message.failure or wire.Failure(code="storage_error", detail="")
    told = endings.failure(failure.code, failure.detail, failure.numbers)
    also = told | ({"preflight": msgspec.to_builtins(message.preflight)} if message.preflight is not None else {})
    wait = None if failure.retry_after_seconds is None else timedelta(seconds=failure.retry_after_seconds)
    verdict = leases.after_failure(failure.code, spent=job.spent, most=job.max_attempts, retry_after=wait)
    free = verdict.spent == job.spent
    also["spent"] = verdict.spent
    if verdict.ends:
        endings.end(job, Job.State.FAILED, by=by, now=now, also=also, **told, attempt=job.attempt)
    elif job.cancel_requested_at is not None:
        endings.cancel(job, by=by, now=now, also=also, **told)
    else:
        not_before = now + verdict.pause if verdict.pause else None
        endings.put_back(job, by=by, now=now, not_before=not_before, also=also, counted=free, **told)


def _call_again(node: Node, now: datetime) -> None:
    """The node hears with its next beat where more waits for it."""
    due = Job.objects.filter(
        Q(not_before=None) | Q(not_before__lte=now),
        node=OuterRef("pk"),
        state=Job.State.QUEUED,
        root__state=StorageRoot.State.VERIFIED,
    )
    Node.objects.filter(Exists(due), pk=node.pk).update(work_waits=True)
