"""An agent asks for work: it tells what it found at its roots, and hears of at most one job, under a new lease.

The node's row is the lock. A node that claims again holds the same job under another lease, so that of two processes
with one identity only the last one to claim is heard.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from agent import wire
from agent.protocol import Code
from artifacts import endings, given, half_done, leases, locks, proofs, subjects
from artifacts.models import Job, StorageRoot
from nodes import holding, refusals
from nodes.audit import record, record_uncounted
from nodes.callers import NodeCaller, Refused
from nodes.event_types import EventType
from nodes.models import BootSession, Heartbeat, Node

LOOK_AGAIN = timedelta(minutes=5)
SOONEST = timedelta(seconds=1)


def claim(message: wire.Claim, *, by: NodeCaller, now: datetime) -> wire.ClaimReply:
    """Take the agent's proofs, and give it the job that it holds already, or else the oldest that is due.

    Raises:
        Refused: ``identity_conflict`` for a process start that is not the one heard last, ``node_disabled`` or
            ``node_retired`` where an operator was faster, ``throttled`` where the node told too much of late.
    """
    with transaction.atomic():
        node = locks.node(by.node_id)
        forbidden = refusals.forbidden(node)
        held = holding.refuse(node, by=by, now=now) if forbidden is None else None
        if forbidden is None and held is None:
            _refuse_other_process(node, message.boot_id)
            reply = _answer(node, message, by, now)
    if forbidden is not None:
        raise refusals.note(by, forbidden, now=now)
    if held is not None:
        raise held
    return reply


def _refuse_other_process(node: Node, boot_id: UUID) -> None:
    heart = Heartbeat.objects.only("boot_id").get(node=node)
    if heart.boot_id == boot_id:
        return
    known = BootSession.objects.filter(node=node, boot_id=boot_id).first()
    if known is not None and known.superseded_at is not None:
        raise refusals.superseded(known.superseded_at)
    detail = "This process start has not been heard yet. Send a heartbeat first, then claim again."
    raise Refused(Code.IDENTITY_CONFLICT, detail)


def _answer(node: Node, message: wire.Claim, by: NodeCaller, now: datetime) -> wire.ClaimReply:
    roots = proofs.take(node, message.proofs, by=by, now=now)
    jobs = _queue(node)
    proven = {root.pk: root for root in roots if root.state == StorageRoot.State.VERIFIED}
    left = half_done.take(roots, message, node=node, by=by, now=now)
    kept = [key for key in message.partials if key not in left.forget]
    job = _job(jobs, message, proven, by, now) if message.types else None
    order = given.order(job, proven[job.root_id], roots, jobs, kept) if job is not None else None
    _note_what_waits(node, roots, _due(jobs, message.types, proven, now))
    return wire.ClaimReply(
        job=given.job(job, order) if job is not None and order is not None else None,
        roots=given.roots(roots),
        forget=left.forget,
        look_again_seconds=_look_again(jobs, left.word_within, now).total_seconds(),
    )


def _queue(node: Node) -> list[Job]:
    """All jobs of the node that have not ended, the oldest first, held."""
    active = Job.objects.select_for_update(of=("self",)).filter(node=node, state__in=Job.ACTIVE)
    return list(active.select_related("artifact").defer("course").order_by("created_at", "id"))


def _job(
    jobs: Sequence[Job], message: wire.Claim, proven: dict[UUID, StorageRoot], by: NodeCaller, now: datetime
) -> Job | None:
    held = next((job for job in jobs if job.state == Job.State.RUNNING), None)
    if held is not None and _goes_on(held, message, proven, by, now):
        return held
    due = _due(jobs, message.types, proven, now)
    if not due:
        return None
    _start(due[0], message.boot_id, by, now)
    return due[0]


def _due(jobs: Iterable[Job], types: Sequence[str], proven: dict[UUID, StorageRoot], now: datetime) -> list[Job]:
    """What may be given now, the oldest first; nothing while a job runs. No types: whatever its type."""
    waiting = []
    for job in jobs:
        if job.state == Job.State.RUNNING:
            return []
        spoken = job.type in types or not types
        if job.state == Job.State.QUEUED and spoken and job.root_id in proven and _is_over(job.not_before, now):
            waiting.append(job)
    return waiting


def _is_over(pause: datetime | None, now: datetime) -> bool:
    return pause is None or pause <= now


def _goes_on(job: Job, message: wire.Claim, proven: dict[UUID, StorageRoot], by: NodeCaller, now: datetime) -> bool:
    """An agent that claims runs nothing: the job that it held goes on under a new lease, unless it may not."""
    if job.cancel_requested_at is not None:
        endings.cancel(job, by=by, now=now)
    elif job.root_id not in proven:
        endings.give_back(job, by=by, now=now, why="root_unverified")
    elif job.type not in message.types:
        endings.give_back(job, by=by, now=now, why="job_type_unsupported")
    elif job.boot_id == message.boot_id:
        locks.change(job, **_lease(job, message.boot_id, now))
        return True
    else:
        return _takes_over(job, message.boot_id, by, now)
    return False


def _takes_over(job: Job, boot_id: UUID, by: NodeCaller, now: datetime) -> bool:
    """Another process start goes on; where one after the other gets no further, the job ends."""
    fruitless = 0 if job.bytes_done > job.bytes_at_claim else job.fruitless + 1
    if fruitless >= leases.MAX_FRUITLESS:
        detail = f"The agent was started {fruitless} times over this job, and it got no further. Look at its log."
        failure = endings.failure("lease_lost", detail)
        endings.end(job, Job.State.FAILED, by=by, now=now, also=failure | {"fruitless": fruitless}, **failure)
        return False
    job.fruitless = fruitless
    _start(job, boot_id, by, now)
    return True


def _start(job: Job, boot_id: UUID, by: NodeCaller, now: datetime) -> None:
    """One attempt more, under its first lease."""
    fresh = job.state == Job.State.QUEUED
    locks.change(
        job,
        **_lease(job, boot_id, now),
        state=Job.State.RUNNING,
        attempt=job.attempt + 1,
        fruitless=0 if fresh else job.fruitless,
        bytes_at_claim=max(job.bytes_at_claim, job.bytes_done),
        started_at=job.started_at or now,
        not_before=None,
    )
    tell = record_uncounted if fresh else record  # from the queue: whatever put it there was counted
    tell(EventType.JOB_STARTED, by=by, about=subjects.job(job), at=now, **endings.about(job), attempt=job.attempt)


def _lease(job: Job, boot_id: UUID, now: datetime) -> dict[str, object]:
    return {
        "boot_id": boot_id,
        "lease_id": uuid4(),
        "lease_expires_at": now + settings.JOB_LEASE,
        "bytes_fetched_before": job.bytes_fetched,
        "phase": "",
        "bytes_per_second": 0.0,
        "eta_seconds": None,
        "progress_at": now,
    }


def _note_what_waits(node: Node, roots: Iterable[StorageRoot], due: Sequence[Job]) -> None:
    """Beats say that work waits while a claim would find some: a job, or a root that nobody has looked at yet."""
    waits = bool(due) or any(root.approve and not root.fault for root in roots)
    if node.work_waits != waits:
        Node.objects.filter(pk=node.pk).update(work_waits=waits)


def _look_again(jobs: Iterable[Job], word_within: timedelta | None, now: datetime) -> timedelta:
    """When the agent claims again of itself: in five minutes, when a pause is over, or as somebody waits for word."""
    pauses = [job.not_before - now for job in jobs if job.state == Job.State.QUEUED and job.not_before is not None]
    waits = [max(pause, SOONEST) for pause in pauses if pause > timedelta()]
    return min([LOOK_AGAIN, *waits, *([word_within] if word_within is not None else [])])
