"""What operators do with storage roots: register, revise, approve again, retire; each with its line in the history."""

from datetime import datetime
from typing import Any

from django.db import transaction

from agent import wire
from agent.protocol import Code
from agent.wire import FieldError
from artifacts import endings, locks, paths, reserves, subjects
from artifacts.models import Job, StorageRoot
from nodes import labels
from nodes.audit import record
from nodes.callers import Caller, Refused, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import Node, Volume

VOLUME = "artifacts"
"""The agent's volume that roots lie in."""

REVISABLE = ("host_path", "purpose", "reserve_bytes", "reserve_percent", "ceiling_bytes")


def register(
    node: Node,
    *,
    host_path: str,
    container_path: str,
    purpose: str = "artifacts",
    reserve_bytes: int | None = None,
    reserve_percent: float | None = None,
    ceiling_bytes: int | None = None,
    by: Caller,
    now: datetime,
) -> StorageRoot:
    """Register a folder of the node for models; its agent proves it before anything is written there.

    Args:
        host_path: as the server knows it; only people read it.
        container_path: the same folder as the agent knows it, below its artifact volume.
        reserve_bytes: to be left free on the file system; this or ``reserve_percent``, else 5 %.
        ceiling_bytes: what models may fill at most.

    Raises:
        Refused: ``invalid`` naming each field at fault; ``state_conflict`` where the node is out of service, has not
            told its volumes yet, or has 32 roots already.
    """
    require_operator(by)
    if reserve_bytes is None and reserve_percent is None:
        reserve_percent = reserves.DEFAULT_PERCENT
    limits = {"reserve_bytes": reserve_bytes, "reserve_percent": reserve_percent, "ceiling_bytes": ceiling_bytes}
    _refuse(
        paths.host_fault(host_path),
        paths.root_fault(container_path),
        _purpose_fault(purpose),
        *reserves.faults(limits),
    )
    with transaction.atomic():
        held = locks.node_in_service(node.pk)
        others = _others(held)
        if len(others) >= wire.MAX_ROOTS:
            raise Refused(Code.STATE_CONFLICT, f"{held} has {len(others)} storage roots, and may have no more.")
        volume = _volume(held)
        _refuse(
            paths.volume_fault(container_path, volume.path, volume.filesystem),
            paths.overlap(container_path, [other.container_path for other in others], "container_path"),
            paths.overlap(host_path, [other.host_path for other in others], "host_path"),
        )
        root = StorageRoot.objects.create(
            node=held,
            host_path=host_path,
            container_path=container_path,
            purpose=purpose.strip(),
            created_at=now,
            created_by=by.label[:255],
            **limits,
        )
        told = {"host_path": host_path, "container_path": container_path, "purpose": root.purpose, **limits}
        record(EventType.ROOT_REGISTERED, by=by, about=subjects.root(root), at=now, **told)
        _call(held)
    return root


def revise(root: StorageRoot, changes: dict[str, Any], *, version: int, by: Caller, now: datetime) -> StorageRoot:
    """Change what operators say about a root: ``REVISABLE`` names the fields. Nothing new, no event.

    Args:
        changes: the new values by field; one kind of reserve takes the place of the other.
        version: of the root as the operator saw it.

    Raises:
        Refused: ``invalid`` naming each field at fault, ``precondition_failed`` where somebody was faster,
            ``state_conflict`` for a retired root.
    """
    require_operator(by)
    detail = f"No such field; one may change {', '.join(REVISABLE)}."
    _refuse(*[FieldError(field=str(name), detail=detail) for name in changes if name not in REVISABLE])
    with transaction.atomic():
        held = locks.node(root.node_id)
        found = locks.root(root.pk)
        if found.version != version:
            now_at = f"{found} is at version {found.version}, not {version}"
            raise Refused(Code.PRECONDITION_FAILED, f"{now_at}: somebody changed it meanwhile. Read it again.")
        wanted = _wanted(found, changes)
        if "host_path" in wanted:
            taken = [other.host_path for other in _others(held) if other.pk != found.pk]
            _refuse(paths.overlap(wanted["host_path"], taken, "host_path"))
        new = {name: value for name, value in wanted.items() if value != getattr(found, name)}
        if not new:
            return found
        told = {name: {"old": getattr(found, name), "new": value} for name, value in new.items()}
        locks.change(found, **new, version=found.version + 1)
        record(EventType.ROOT_REVISED, by=by, about=subjects.root(found), at=now, changes=told)
    return found


def _wanted(root: StorageRoot, changes: dict[str, Any]) -> dict[str, Any]:
    """The fields as they will stand."""
    wanted = {
        name: value.strip() if name == "purpose" and isinstance(value, str) else value
        for name, value in changes.items()
    }
    limits = reserves.merged(root, wanted)
    _refuse(
        *reserves.faults(limits),
        paths.host_fault(wanted["host_path"]) if "host_path" in wanted else None,
        _purpose_fault(wanted["purpose"]) if "purpose" in wanted else None,
    )
    return wanted | limits


def approve_again(root: StorageRoot, *, reason: str, by: Caller, now: datetime) -> StorageRoot:
    """Take the folder as it is now: its agent writes the marker anew and tells the device that it lies on.

    Raises:
        Refused: ``invalid`` without a reason; ``state_conflict`` for a retired root, a node out of service, or while a
            job runs there.
    """
    require_operator(by)
    why = reason_of(reason)
    with transaction.atomic():
        node = locks.node_in_service(root.node_id)
        found = locks.root(root.pk)
        _refuse_while_running(found)
        was = {"was": found.state, "fault": found.fault, "device_id": found.device_id, "fsid": found.fsid}
        locks.change(found, state=StorageRoot.State.PENDING, approve=True, fault="", fault_detail="")
        record(EventType.ROOT_REVISED, by=by, about=subjects.root(found), at=now, approve_again=True, reason=why, **was)
        _call(node)
    return found


def retire(root: StorageRoot, *, reason: str, by: Caller, now: datetime) -> StorageRoot:
    """Use the folder no more: jobs that wait for it are cancelled; what lies there stays there.

    Raises:
        Refused: ``invalid`` without a reason; ``state_conflict`` where it is retired already, or while a job runs.
    """
    require_operator(by)
    why = reason_of(reason)
    with transaction.atomic():
        node = locks.node(root.node_id)
        found = locks.root(root.pk)
        _refuse_while_running(found)
        waiting = Job.objects.select_for_update().filter(root=found, state=Job.State.QUEUED).order_by("created_at")
        jobs = list(waiting)
        for job in jobs:
            endings.cancel(job, by=by, now=now, reason=f"storage root retired: {why}"[:255])
        locks.change(found, state=StorageRoot.State.RETIRED, approve=False, retired_at=now)
        told = {"reason": why, "cancelled_jobs": len(jobs)}
        record(EventType.ROOT_RETIRED, by=by, about=subjects.root(found), at=now, **told)
        _call(node)
    return found


def _others(node: Node) -> list[StorageRoot]:
    """All roots of a node that are in use."""
    return list(StorageRoot.objects.filter(node=node).exclude(state=StorageRoot.State.RETIRED))


def _volume(node: Node) -> Volume:
    volume = Volume.objects.filter(node=node, name=VOLUME).first()
    if volume is None:
        told = "names no volume for artifacts" if node.facts_at else "has not told its volumes yet"
        detail = f"{node} {told}: start its agent with the artifact volume mounted, and wait for its facts."
        raise Refused(Code.STATE_CONFLICT, detail)
    return volume


def _refuse_while_running(root: StorageRoot) -> None:
    running = Job.objects.filter(root=root, state=Job.State.RUNNING).first()
    if running is not None:
        detail = f"The job {running} ({running.pk}) runs in {root}. Cancel it, or wait until it has ended."
        raise Refused(Code.STATE_CONFLICT, detail)


def _purpose_fault(value: Any) -> FieldError | None:
    return labels.text_fault(value, "purpose", least=1, most=64)


def _refuse(*faults: FieldError | None) -> None:
    errors = [fault for fault in faults if fault is not None]
    if errors:
        raise Refused(Code.INVALID, "; ".join(f"{e.field}: {e.detail}" for e in errors[:3]), errors=errors)


def _call(node: Node) -> None:
    """The node hears with its next beat that something waits for it."""
    Node.objects.filter(pk=node.pk).update(work_waits=True)
