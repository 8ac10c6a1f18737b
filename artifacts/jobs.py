"""What operators do to a job that stands: cancel it, let it try again, or dismiss that it failed."""

from datetime import datetime

from django.db import transaction

from agent.protocol import Code
from artifacts import endings, half_done, locks, orders, subjects
from artifacts.models import Artifact, Job
from nodes.audit import record
from nodes.callers import Caller, Refused, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import Node


def cancel(job: Job, *, reason: str = "", by: Caller, now: datetime) -> Job:
    """End a job that waits at once; tell one that runs to stop. Asked twice, nothing more happens.

    Raises:
        Refused: ``state_conflict`` where it has ended already.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        locks.node(job.node_id)
        found = locks.job(job.pk)
        if found.state not in Job.ACTIVE:
            raise Refused(Code.STATE_CONFLICT, f"The job {found} has ended already: it {_ended(found)}.")
        if found.state == Job.State.QUEUED:
            return endings.cancel(found, by=by, now=now, reason=why)
        if found.cancel_requested_at is None:
            locks.change(found, cancel_requested_at=now, cancelled_by=by.label[:255])
            told = endings.about(found) | {"reason": why}
            record(EventType.JOB_CANCEL_REQUESTED, by=by, about=subjects.job(found), at=now, **told)
    return found


def retry(job: Job, *, reason: str = "", by: Caller, now: datetime) -> Job:
    """Let a job that failed or was cancelled try again, with all its attempts; what it had fetched still counts.

    Raises:
        Refused: ``state_conflict`` where it has not ended so, the node is out of service, its artifact is gone, or the
            same is under way; ``job_type_unsupported``, ``root_unverified`` as for a new order.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        node = locks.node_in_service(job.node_id)
        orders.refuse_unspoken(node, job.type)
        locks.verified_root(job.root_id)
        found = locks.job(job.pk)
        _refuse_unless_retriable(found)
        was = {"was": found.state, "failure_code": found.failure_code}
        locks.change(found, **_AFRESH)
        half_done.keep(found)
        told = endings.about(found) | was | {"reason": why}
        record(EventType.JOB_RETRIED, by=by, about=subjects.job(found), at=now, **told)
        Node.objects.filter(pk=node.pk).update(work_waits=True)
    return found


def dismiss(job: Job, *, reason: str = "", by: Caller, now: datetime) -> Job:
    """Note that somebody has seen that the job failed: it needs attention no more, and stays in lists and history.

    Dismissed twice, nothing more happens. One that is tried again and fails anew needs attention anew.

    Raises:
        Refused: ``state_conflict`` where it has not failed.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        locks.node(job.node_id)
        found = locks.job(job.pk)
        if found.state != Job.State.FAILED:
            detail = f"The job {found} {_ended(found)}; only one that failed can be dismissed."
            raise Refused(Code.STATE_CONFLICT, detail)
        if found.dismissed_at is None:
            locks.change(found, dismissed_at=now, dismissed_by=by.label[:255])
            told = endings.about(found) | {"failure_code": found.failure_code, "reason": why}
            record(EventType.JOB_DISMISSED, by=by, about=subjects.job(found), at=now, **told)
    return found


_AFRESH = {
    "state": Job.State.QUEUED,
    "spent": 0,
    "fruitless": 0,
    "given_back": 0,
    "not_before": None,
    "cancel_requested_at": None,
    "cancelled_by": "",
    "finished_at": None,
    "failure_code": "",
    "failure_detail": "",
    "failure_numbers": {},
    "dismissed_at": None,
    "dismissed_by": "",
}


def _refuse_unless_retriable(job: Job) -> None:
    if job.state not in Job.RETRIABLE:
        detail = f"The job {job} {_ended(job)}; only one that failed or was cancelled can be tried again."
        raise Refused(Code.STATE_CONFLICT, detail)
    if job.artifact is not None and job.artifact.state == Artifact.State.REMOVED:
        raise Refused(Code.STATE_CONFLICT, f"{job.artifact} was removed; there is nothing left to do with it.")
    twin = orders.active_twin(job)
    if twin is not None:
        raise Refused(Code.STATE_CONFLICT, f"The same is under way already: job {twin.pk}.")


def _ended(job: Job) -> str:
    return {
        Job.State.QUEUED: "waits",
        Job.State.RUNNING: "runs",
        Job.State.SUCCEEDED: "succeeded",
        Job.State.FAILED: f"failed ({job.failure_code})",
        Job.State.CANCELLED: "was cancelled",
    }[Job.State(job.state)]
