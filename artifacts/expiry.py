"""Leases that nobody renewed, pauses that are over, and jobs of nodes that are gone: looked for every few seconds.

Each job is looked at again under its node's lock, so that two looks at once do no harm.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from artifacts import endings, leases, locks
from artifacts.models import Job, StorageRoot
from nodes import audit, continuity
from nodes.callers import SYSTEM
from nodes.event_types import EventType
from nodes.models import ControlPlane, Node

BATCH = 500


@dataclass(frozen=True, slots=True)
class Expired:
    """What a look did."""

    lost: int  # leases that nobody had renewed
    gone: int  # jobs that waited for a retired node
    called: int  # nodes that hear that a pause is over


def expire(*, now: datetime) -> Expired:
    """End the leases that are over, cancel what waits for a retired node, call nodes whose jobs' pauses are over.

    The control plane's own absence is not the agents' fault, and neither is its clock: a lease that ended while nobody
    could renew it, or because the clock was set forward, is given a whole new length first.
    """
    continuity.resume(now)
    _spare_those_in_a_gap(now)
    _spare_those_unswept(now)
    running = Job.objects.filter(state=Job.State.RUNNING, lease_expires_at__lt=now)
    lost = sum(_expire(job, node, now) for job, node in _some(running))
    waiting = Job.objects.filter(state=Job.State.QUEUED, node__retired_at__isnull=False)
    gone = sum(_cancel(job, node, now) for job, node in _some(waiting))
    return Expired(lost, gone, _call_those_whose_pause_is_over(now))


def _some(jobs: QuerySet[Job]) -> list[tuple[UUID, UUID]]:
    return list(jobs.order_by("node_id", "created_at").values_list("pk", "node_id")[:BATCH])


def _spare_those_in_a_gap(now: datetime) -> None:
    """A lease that had ended before the gap stays ended; one that was given after it is as long as any."""
    gap = audit.events().filter(type=EventType.CONTROL_PLANE_GAP).order_by("-position").first()
    if gap is None or not gap.at <= now < gap.at + settings.JOB_LEASE:
        return
    _spare(datetime.fromisoformat(gap.details["since"]), gap.at + settings.JOB_LEASE)


def _spare_those_unswept(now: datetime) -> None:
    """As after an absence where beats were heard: the clock was set forward, and they came before a sweep did.

    Or only the worker was away; then a lease that ended meanwhile lasts a length longer, which does no harm.
    """
    plane = ControlPlane.objects.filter(id=1).first()
    if plane is None or plane.swept_at is None:
        return
    since, until = plane.unswept_since, plane.unswept_until
    if now - plane.swept_at > settings.GAP_AFTER:  # no sweep has noticed yet
        since, until = plane.swept_at, now
    if since is not None and until is not None and until <= now < until + settings.JOB_LEASE:
        _spare(since, until + settings.JOB_LEASE)


def _spare(since: datetime, fresh: datetime) -> None:
    ended = Job.objects.filter(state=Job.State.RUNNING, lease_expires_at__gte=since, lease_expires_at__lt=fresh)
    ended.update(lease_expires_at=fresh)


def _expire(job_id: UUID, node_id: UUID, now: datetime) -> bool:
    """The agent neither renewed its lease nor told a result: one attempt is spent."""
    with transaction.atomic():
        node = locks.node(node_id)
        job = locks.job(job_id)
        ended_at = job.lease_expires_at
        if job.state != Job.State.RUNNING or ended_at is None or ended_at >= now:
            return False
        if job.cancel_requested_at is not None or node.retired_at is not None:
            endings.cancel(job, by=SYSTEM, now=now, at=ended_at, why="lease_lost", noticed_at=now)
            return True
        detail = "The agent neither renewed its lease nor told a result: it stopped, or it could not be heard."
        failure = endings.failure("lease_lost", detail)
        verdict = leases.after_failure("lease_lost", spent=job.spent, most=job.max_attempts)
        also = failure | {"spent": verdict.spent}
        if verdict.ends:
            told = failure | {"attempt": job.attempt, "noticed_at": now}
            endings.end(job, Job.State.FAILED, by=SYSTEM, now=now, at=ended_at, also=also, **told)
        else:
            endings.put_back(job, by=SYSTEM, now=now, at=ended_at, also=also, **failure, noticed_at=now)
            Node.objects.filter(pk=node.pk).update(work_waits=True)
    return True


def _cancel(job_id: UUID, node_id: UUID, now: datetime) -> bool:
    with transaction.atomic():
        locks.node(node_id)
        job = locks.job(job_id)
        if job.state != Job.State.QUEUED:
            return False
        endings.cancel(job, by=SYSTEM, now=now, why="node_retired")
    return True


def _call_those_whose_pause_is_over(now: datetime) -> int:
    """Such nodes hear with their next beat that work waits; once for each pause."""
    over = Job.objects.filter(
        state=Job.State.QUEUED,
        not_before__lte=now,
        root__state=StorageRoot.State.VERIFIED,
        node__retired_at=None,
        node__enabled=True,
    )
    called = set(over.order_by().values_list("node_id", flat=True)[:BATCH])
    for node_id in called:
        with transaction.atomic():
            locks.node(node_id)
            over.filter(node=node_id).update(not_before=None)
            Node.objects.filter(pk=node_id).update(work_waits=True)
    return len(called)
