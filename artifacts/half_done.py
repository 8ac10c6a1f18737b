"""What failed and cancelled jobs left on a node: noted as its agent tells it, kept for a while, forgotten on word."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from agent import wire
from agent.protocol import Code
from artifacts import endings, locks, subjects
from artifacts.models import HalfDone, Job, StorageRoot
from nodes.audit import record, record_uncounted
from nodes.callers import Caller, Refused, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import Node

SOONEST_WORD = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Left:
    """What a claim says of half-done files."""

    forget: list[UUID]  # jobs whose files nobody needs
    word_within: timedelta | None  # somebody waits to hear that files are gone: claim again then


def forget(job: Job, *, reason: str = "", by: Caller, now: datetime) -> Job:
    """Give the room back that a job which ended without success takes; asked twice, nothing more happens.

    The agent deletes the files with its next claim. They count as gone once its word lacks them.

    Raises:
        Refused: ``state_conflict`` where the job has not ended so, another goes on with its files, its root or node
            was retired, or nothing of it lies there.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        node = locks.node(job.node_id)
        found = locks.job(job.pk)
        _refuse_unless_over(found)
        if unwatched := _unwatched(found, node):
            raise Refused(Code.STATE_CONFLICT, unwatched)
        left = HalfDone.objects.filter(pk=found.pk).first()
        if left is None:
            raise Refused(Code.STATE_CONFLICT, _nothing_known(found, node))
        if left.asked_at is not None:
            return found
        _refuse_what_another_needs(found)
        left.asked_at, left.asked_by = now, by.label[:255]
        left.save(update_fields=["asked_at", "asked_by"])
        told = endings.about(found) | {"half_done_bytes": left.bytes, "reason": why}
        record(EventType.JOB_FORGET_REQUESTED, by=by, about=subjects.job(found), at=now, **told)
        Node.objects.filter(pk=node.pk).update(work_waits=True)
    return found


def settled(job: Job) -> str:
    """Why it is of no use to ask for their deletion, as a sentence; "" where it may be."""
    if job.state in Job.RETRIABLE and (unwatched := _unwatched(job, job.node)):
        return unwatched
    left = of(job)
    if left is not None and left.gone_at is not None:
        return f"What the job of {job.repo_id} left half done is gone already."
    if left is not None and left.asked_at is not None:
        return f"{job.node} is told already to delete what the job of {job.repo_id} left half done."
    return ""


def keep(job: Job) -> None:
    """The job is tried again: what lies there still is needed, and what is gone is past. Its node is held."""
    HalfDone.objects.filter(pk=job.pk, gone_at__isnull=False).delete()
    HalfDone.objects.filter(pk=job.pk).update(asked_at=None, asked_by="")


def of(job: Job) -> HalfDone | None:
    """What is known of a job's half-done files: that they lie there, or that they are gone as an operator asked.

    None where nobody needs to know, or nobody watches the folder any more. The job's root and node are at hand.
    """
    if job.state not in Job.RETRIABLE or job.root.state == StorageRoot.State.RETIRED or job.node.retired_at is not None:
        return None
    found: HalfDone | None = getattr(job, "half_done", None)
    return found


def kept_until(job: Job, left: HalfDone) -> datetime | None:
    """When they are deleted unasked, with the next claim after; None where an operator asked for it."""
    return job.finished_at + settings.PARTIAL_GRACE if job.finished_at and left.asked_at is None else None


def take(roots: Sequence[StorageRoot], message: wire.Claim, *, node: Node, by: Caller, now: datetime) -> Left:
    """Note what lies in a node's roots by the word of its agent, in the caller's transaction.

    Args:
        roots: all of the node that are in use, held, as ``proofs.take`` gave them for this word.
        node: its row, held.
    """
    told = dict.fromkeys(message.partials)
    jobs = {job.pk: job for job in Job.objects.filter(node=node, pk__in=told).defer("course")} if told else {}
    known, in_use = _known(roots, told), {root.pk for root in roots}
    known |= _moved_on(roots, [job for key, job in jobs.items() if key not in known and job.root_id not in in_use])
    lacking = [left for left in known.values() if left.pk not in told]
    _note_gone([left for left in lacking if left.root_id in _looked_through(roots, message)], by, now)
    _note_lying([job for job in jobs.values() if job.state in Job.RETRIABLE], known, message, in_use)
    forget = [key for key in told if not _is_needed(jobs.get(key), known.get(key), in_use, now)]
    asked = [left.asked_at for left in known.values() if left.asked_at is not None and left.gone_at is None]
    return Left(forget, max((now - min(asked)) / 2, SOONEST_WORD) if asked else None)


def _known(roots: Sequence[StorageRoot], told: Collection[UUID]) -> dict[UUID, HalfDone]:
    """What lies in the roots as far as is known, and what is told of again though it was gone."""
    if not told and not any(root.holds_half_done for root in roots):  # type: ignore[attr-defined]
        return {}
    found = HalfDone.objects.filter(Q(gone_at=None) | Q(pk__in=told), root__in=[root.pk for root in roots])
    return {left.pk: left for left in found}


def _moved_on(roots: Sequence[StorageRoot], orphans: Sequence[Job]) -> dict[UUID, HalfDone]:
    """What was asked for before its root was retired, and lies in the same folder, registered anew: it has an end."""
    if not orphans:
        return {}
    here = {root.container_path: root for root in roots}
    asked = HalfDone.objects.filter(pk__in=[job.pk for job in orphans], asked_at__isnull=False, gone_at=None)
    found = {}
    for left in asked.select_related("root"):
        again = here.get(left.root.container_path)
        if again is not None:
            left.root = again
            left.save(update_fields=["root"])
            found[left.pk] = left
    return found


def _looked_through(roots: Sequence[StorageRoot], message: wire.Claim) -> set[UUID]:
    """The roots whose half-done files this word lists, all of them; it lists none of one with a fault or a bad disk."""
    if len(message.partials) >= wire.MAX_PARTIALS:
        return set()
    listed = {proof.root_id for proof in message.proofs if proof.partial_bytes.value is not None}
    return {root.pk for root in roots if root.state == StorageRoot.State.VERIFIED and root.pk in listed}


def _note_gone(lacking: Sequence[HalfDone], by: Caller, now: datetime) -> None:
    """What an operator asked for is told, once; all else was moved on, or kept long enough."""
    for left in lacking:
        if left.asked_at is None:
            left.delete()
            continue
        left.gone_at = now
        left.save(update_fields=["gone_at"])
        told = endings.about(left.job) | {"freed_bytes": left.bytes, "asked_by": left.asked_by}
        record_uncounted(EventType.JOB_FORGOTTEN, by=by, about=subjects.job(left.job), at=now, **told)


def _note_lying(over: Sequence[Job], known: dict[UUID, HalfDone], message: wire.Claim, roots: Collection[UUID]) -> None:
    fresh = []
    for job in over:
        left, weight = known.get(job.pk), message.weights.get(job.pk)
        if left is None:
            fresh.append(HalfDone(job=job, root_id=job.root_id, bytes=weight))
        elif left.bytes != weight or left.gone_at is not None:
            left.bytes, left.gone_at = weight, None
            left.save(update_fields=["bytes", "gone_at"])
    HalfDone.objects.bulk_create([left for left in fresh if left.root_id in roots])


def _is_needed(job: Job | None, left: HalfDone | None, in_use: Collection[UUID], now: datetime) -> bool:
    """Not where the job ended well, failed or was cancelled a while ago, is not known here, or an operator asked.

    Nor where its root was retired, and the folder registered anew: such a job is never tried again.
    """
    if job is None or job.state == Job.State.SUCCEEDED or job.root_id not in in_use:
        return False
    if job.state in Job.ACTIVE:
        return True
    wanted = left is not None and left.asked_at is not None
    return not wanted and job.finished_at is not None and job.finished_at > now - settings.PARTIAL_GRACE


def _refuse_unless_over(job: Job) -> None:
    remedy = {
        Job.State.QUEUED: "waits and goes on with its half-done files. Cancel it first",
        Job.State.RUNNING: "runs and works on these files. Cancel it first, and wait until it has stopped",
        Job.State.SUCCEEDED: "succeeded: nothing half done is left of it. To free what it brought, remove the artifact",
    }.get(Job.State(job.state))
    if remedy is not None:
        raise Refused(Code.STATE_CONFLICT, f"The job {job} {remedy}.")


def _unwatched(job: Job, node: Node) -> str:
    """Why nobody would delete them, whatever was asked for before; "" where an agent would."""
    root = job.root
    if node.retired_at is None and root.state != StorageRoot.State.RETIRED:
        return ""
    what = f"{node}" if node.retired_at is not None else f"The storage root {root}"
    where = f"{root.host_path}/.partial/{job.pk}"
    return f"{what} was retired, and no agent deletes anything there. Delete {where} on the server, if it is there."


def _nothing_known(job: Job, node: Node) -> str:
    """An agent lists what lies in a proven root; of another nobody knows."""
    if job.root.state == StorageRoot.State.VERIFIED:
        return f"As its agent told last, nothing half done of {job} lies on {node}."
    remedy = "The root's page says what to do; ask again once it is verified."
    return f"The storage root {job.root} is not verified: nobody knows what {job} left half done there. {remedy}"


def _refuse_what_another_needs(job: Job) -> None:
    """An order of the same goes on with what lies here, under a name of its own once it has begun."""
    same = Job.objects.filter(
        Q(state=Job.State.RUNNING, commit="") | Q(revision=job.revision) | Q(commit=job.commit),
        Q(commit="") | Q(commit=job.commit),
        root=job.root_id,
        type=wire.ACQUIRE,
        repo_id=job.repo_id,
        selection=job.selection,
        preflight_only=False,
        state__in=Job.ACTIVE,
    )
    other = same.first()
    if other is not None:
        does = "runs" if other.state == Job.State.RUNNING else "waits"
        detail = f"The job {other.pk} of the same {does}, and may go on with these files. Cancel it first."
        raise Refused(Code.STATE_CONFLICT, detail)
