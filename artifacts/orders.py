"""Ordering work from a node: bring a snapshot into a root, read it again, or remove it."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, get_args

from django.db import transaction

from agent import wire
from agent.protocol import Code
from agent.wire import FieldError
from artifacts import endings, locks, subjects, wishes
from artifacts.models import Artifact, Job, StorageRoot
from nodes.audit import record
from nodes.callers import Caller, Refused, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import Node

MAX_WAITING = 1000
"""Jobs of one node that have not ended: each claim looks at all of them."""


def order(
    kind: wire.JobType,
    *,
    root: StorageRoot,
    repo_id: str,
    revision: str,
    allow_patterns: Sequence[str] = (),
    ignore_patterns: Sequence[str] = (),
    allow_formats: Sequence[str] = (),
    preflight_only: bool = False,
    reason: str = "",
    artifact: Artifact | None = None,
    by: Caller,
    now: datetime,
) -> tuple[Job, bool]:
    """Order a job, or join the one that is under way to the same end.

    Args:
        kind: what is to be done.
        root: where.
        repo_id: on the Hub, ``organization/model``.
        revision: a branch, a tag or a commit; a commit of 40 hex digits is pinned from the start.
        allow_patterns: only files that one of them matches; none: all.
        ignore_patterns: no file that one of them matches.
        allow_formats: formats that run code when they are loaded, let in by name; needs a ``reason``.
        preflight_only: only tell what would be brought, and whether there is room.
        reason: told in the history.
        artifact: the published snapshot that is meant, to verify or to remove.

    Returns:
        The job, and whether it is new.

    Raises:
        Refused: ``invalid`` naming each field at fault; ``state_conflict`` for a node out of service, a retired root,
            an artifact that is gone, or an order under way that lets other formats in; ``job_type_unsupported`` where
            the node's agent does not speak that type; ``root_unverified``.
    """
    require_operator(by)
    _refuse_unclear(kind, artifact)
    wanted = wishes.checked(
        repo_id=repo_id,
        revision=revision,
        allow_patterns=allow_patterns,
        ignore_patterns=ignore_patterns,
        allow_formats=allow_formats,
        reason=reason,
    )
    selection = selection_digest(wanted["allow_patterns"], wanted["ignore_patterns"])
    if artifact is not None:
        selection = artifact.selection
    with transaction.atomic():
        node = locks.node_in_service(root.node_id)
        refuse_unspoken(node, kind)
        held = locks.verified_root(root.pk)
        meant = _present(artifact) if artifact is not None else None
        job = Job(
            type=kind,
            node=node,
            root=held,
            artifact=meant,
            commit=meant.commit if meant else wishes.commit_of(wanted["revision"]),
            selection=selection,
            preflight_only=preflight_only,
            created_at=now,
            created_by=by.label[:255],
            **wanted,
        )
        same = active_twin(job)
        if same is not None:
            return _joined(same, job), False
        _refuse_too_many(node)
        job.save(force_insert=True)
        record(EventType.JOB_ORDERED, by=by, about=subjects.job(job), at=now, **_told(job))
        Node.objects.filter(pk=node.pk).update(work_waits=True)
    return job, True


def acquire(
    root: StorageRoot, *, repo_id: str, revision: str = "main", by: Caller, now: datetime, **more: Any
) -> tuple[Job, bool]:
    """Order a snapshot of the Hub into a root; ``more`` as ``order`` takes it."""
    return order(wire.ACQUIRE, root=root, repo_id=repo_id, revision=revision, by=by, now=now, **more)


def verify(artifact: Artifact, *, reason: str = "", by: Caller, now: datetime) -> tuple[Job, bool]:
    """Order that every byte of a published snapshot is read again."""
    return _about(wire.VERIFY, artifact, reason=reason, by=by, now=now)


def remove(artifact: Artifact, *, reason: str, by: Caller, now: datetime) -> tuple[Job, bool]:
    """Order that a published snapshot is removed from its root.

    Raises:
        Refused: as ``order``; ``invalid`` without a reason.
    """
    return _about(wire.REMOVE, artifact, reason=reason_of(reason), by=by, now=now)


def _about(kind: wire.JobType, artifact: Artifact, *, reason: str, by: Caller, now: datetime) -> tuple[Job, bool]:
    return order(
        kind,
        root=artifact.root,
        repo_id=artifact.repo_id,
        revision=artifact.revision,
        artifact=artifact,
        reason=reason,
        by=by,
        now=now,
    )


def selection_digest(allow: Sequence[str], ignore: Sequence[str]) -> str:
    """SHA-256 (hex) over the patterns, whatever their order; "" where there are none. The agent computes the same."""
    if not allow and not ignore:
        return ""
    said = json.dumps([sorted(set(allow)), sorted(set(ignore))], separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def _refuse_unclear(kind: str, artifact: Artifact | None) -> None:
    if kind not in get_args(wire.JobType):
        fault = FieldError(field="type", detail=f"Give one of {', '.join(get_args(wire.JobType))}.")
    elif kind != wire.ACQUIRE and artifact is None:
        fault = FieldError(field="artifact", detail=f"Say which artifact {kind} is about.")
    else:
        return
    raise Refused(Code.INVALID, f"{fault.field}: {fault.detail}", errors=[fault])


def refuse_unspoken(node: Node, kind: str) -> None:
    """A job that the node's agent cannot do would wait for ever.

    Raises:
        Refused: ``job_type_unsupported``.
    """
    spoken = ((node.facts or {}).get("agent") or {}).get("job_types") or []
    if kind in spoken:
        return
    if node.facts is None:
        detail = f"{node} has not told yet what its agent can do. Start the agent, and wait for its facts."
    else:
        can = ", ".join(spoken) if spoken else "no jobs at all"
        detail = f"The agent of {node} (version {node.agent_version or 'unknown'}) does not do {kind}; it does {can}. "
        detail += "Run an agent of the control plane's release."
    raise Refused(Code.JOB_TYPE_UNSUPPORTED, detail)


def active_twin(job: Job) -> Job | None:
    """Another job to the same end that waits or runs; the job's node is held, so none can come in between."""
    active = Job.objects.filter(state__in=Job.ACTIVE, type=job.type).exclude(pk=job.pk)
    if job.artifact_id is not None:
        return active.filter(artifact=job.artifact_id).first()
    return active.filter(
        root=job.root_id,
        repo_id=job.repo_id,
        revision=job.revision,
        selection=job.selection,
        preflight_only=job.preflight_only,
    ).first()


def _joined(same: Job, wanted: Job) -> Job:
    if same.cancel_requested_at is not None:
        raise Refused(Code.STATE_CONFLICT, f"The same is being cancelled (job {same.pk}). Order again once it ended.")
    if sorted(same.allow_formats) != sorted(wanted.allow_formats):
        lets = ", ".join(same.allow_formats) or "no format that runs code"
        detail = f"The same snapshot is under way (job {same.pk}), and that order allows {lets}. Cancel it first."
        raise Refused(Code.STATE_CONFLICT, detail)
    return same


def _present(artifact: Artifact) -> Artifact:
    found = locks.artifact(artifact.pk)
    if found.state == Artifact.State.REMOVED:
        raise Refused(Code.STATE_CONFLICT, f"{found} was removed; there is nothing left to do with it.")
    return found


def _refuse_too_many(node: Node) -> None:
    waiting = Job.objects.filter(node=node, state__in=Job.ACTIVE).count()
    if waiting >= MAX_WAITING:
        raise Refused(Code.STATE_CONFLICT, f"{waiting} jobs of {node} have not ended yet. Cancel some, or wait.")


def _told(job: Job) -> dict[str, Any]:
    """What the history tells of an order: what differs from the plain case."""
    odd = ("allow_patterns", "ignore_patterns", "allow_formats", "preflight_only", "reason")
    more = {name: getattr(job, name) for name in odd if getattr(job, name)}
    return endings.about(job) | {"root": job.root.container_path} | more
