"""What operators do to a node: disable, enable, retire, revise, clear a conflict; each with its line in the history."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from agent.protocol import Code
from agent.wire import FieldError
from nodes import labels
from nodes.audit import record
from nodes.callers import Caller, Refused, require_operator
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import BootSession, Heartbeat, Node

MAX_REASON = 255

ELIGIBILITY = ("production_eligible", "lab_eligible", "benchmark_eligible")
REVISABLE = ("display_name", "role", "labels", *ELIGIBILITY)


def disable(node: Node, *, reason: str, by: Caller, now: datetime) -> Node:
    """Refuse every further publication of the node, at once, and count it as ineligible; its flags stay as they are.

    Raises:
        Refused: ``state_conflict`` where it is disabled or retired already, ``invalid`` without a reason.
    """
    require_operator(by)
    why = reason_of(reason)
    with transaction.atomic():
        found = _locked(node)
        if not found.enabled:
            raise Refused(Code.STATE_CONFLICT, f"{found} is disabled already{_because(found.enabled_reason)}.")
        changed = _change(found, now, enabled=False, enabled_reason=why)
        record(EventType.NODE_DISABLED, by=by, about=changed, at=now, reason=why)
    return changed


def enable(node: Node, *, reason: str = "", by: Caller, now: datetime) -> Node:
    """Let a disabled node publish again; its agent goes on by itself.

    Raises:
        Refused: ``state_conflict`` where it is enabled or retired.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        found = _locked(node)
        if found.enabled:
            raise Refused(Code.STATE_CONFLICT, f"{found} is enabled already.")
        changed = _change(found, now, enabled=True, enabled_reason=why)
        record(EventType.NODE_ENABLED, by=by, about=changed, at=now, reason=why)
    return changed


def retire(node: Node, *, reason: str, by: Caller, now: datetime) -> Node:
    """Take the node out for good: its row and history stay, its agent hears 410, and no list shows it unasked.

    Raises:
        Refused: ``state_conflict`` where it is retired already, ``invalid`` without a reason.
    """
    require_operator(by)
    why = reason_of(reason)
    with transaction.atomic():
        found = _locked(node)
        changed = _change(found, now, retired_at=now, want_facts=False)
        Heartbeat.objects.filter(node=found).update(liveness=Liveness.OFFLINE)  # nobody waits for it any more
        record(EventType.NODE_RETIRED, by=by, about=changed, at=now, reason=why)
    return changed


def clear_conflict(node: Node, *, reason: str, by: Caller, now: datetime) -> Node:
    """Take the flag of an identity conflict down, once one of the two is stopped; two that still speak raise it again.

    The superseded process starts are forgotten, so that whichever agent speaks next goes on: the one that was refused
    may be the original, where the copy was started last.

    Raises:
        Refused: ``state_conflict`` where there is none, ``invalid`` without a reason.
    """
    require_operator(by)
    why = reason_of(reason)
    with transaction.atomic():
        found = _locked(node)
        since, copies = found.identity_conflict_at, found.identity_conflict
        if since is None:
            raise Refused(Code.STATE_CONFLICT, f"{found} has no identity conflict to clear.")
        changed = _change(found, now, identity_conflict_at=None, identity_conflict={})
        BootSession.objects.filter(node=found, superseded_at__isnull=False).delete()
        event = EventType.IDENTITY_CONFLICT_CLEARED
        record(event, by=by, about=changed, at=now, reason=why, since=since, was=copies)
    return changed


def revise(node: Node, changes: dict[str, Any], *, version: int, by: Caller, now: datetime) -> Node:
    """Change what operators say about a node: ``REVISABLE`` names the fields. Nothing new, no event.

    Args:
        changes: the new values by field; labels replace all labels.
        version: of the node as the operator saw it.

    Raises:
        Refused: ``invalid`` naming each field at fault, ``precondition_failed`` where somebody was faster,
            ``state_conflict`` for a retired node.
    """
    require_operator(by)
    wanted = checked(changes)
    with transaction.atomic():
        found = _locked(node)
        if found.version != version:
            raise Refused(
                Code.PRECONDITION_FAILED,
                f"{found} is at version {found.version}, not {version}: somebody changed it meanwhile. Read it again.",
            )
        old = {name: getattr(found, name) for name in wanted}
        new = {name: value for name, value in wanted.items() if value != old[name]}
        if not new:
            return found
        changed = _change(found, now, **new)
        told = {name: {"old": old[name], "new": value} for name, value in new.items()}
        record(EventType.NODE_REVISED, by=by, about=changed, at=now, changes=told)
    return changed


def checked(changes: dict[str, Any]) -> dict[str, Any]:
    """The changes as they will stand, texts without surrounding blanks.

    Raises:
        Refused: ``invalid``, naming every field at fault.
    """
    errors = []
    for name, value in changes.items():
        if name not in _FAULTS:
            errors.append(FieldError(field=name, detail=f"No such field; one may change {', '.join(REVISABLE)}."))
        else:
            errors += _FAULTS[name](value, name)
    if errors:
        raise Refused(Code.INVALID, "; ".join(f"{e.field}: {e.detail}" for e in errors[:3]), errors=errors)
    return {name: value.strip() if isinstance(value, str) else value for name, value in changes.items()}


def _name_faults(value: Any, field: str) -> list[FieldError]:
    fault = labels.text_fault(value, field, least=1, most=255)
    return [fault] if fault else []


def _role_faults(value: Any, field: str) -> list[FieldError]:
    fault = labels.text_fault(value, field, most=64)
    return [fault] if fault else []


def _label_faults(value: Any, field: str) -> list[FieldError]:
    return list(labels.faults(value, field))


def _flag_faults(value: Any, field: str) -> list[FieldError]:
    return [] if isinstance(value, bool) else [FieldError(field=field, detail="Say true or false.")]


_FAULTS: dict[str, Callable[[Any, str], list[FieldError]]] = {
    "display_name": _name_faults,
    "role": _role_faults,
    "labels": _label_faults,
    **dict.fromkeys(ELIGIBILITY, _flag_faults),
}


def reason_of(reason: Any, *, required: bool = True) -> str:
    """The reason on one line.

    Raises:
        Refused: ``invalid``, where it is missing or longer than 255 characters.
    """
    why = " ".join(reason.split()) if isinstance(reason, str) else reason
    fault = labels.text_fault(why, "reason", least=int(required), most=MAX_REASON)
    if fault:
        raise Refused(Code.INVALID, f"reason: {fault.detail} It is told in the history.", errors=[fault])
    return str(why)


def _locked(node: Node) -> Node:
    """The node's row as it is now, held until the transaction ends; a retired one is final."""
    found = Node.objects.select_for_update().get(pk=node.pk)
    if found.retired_at is not None:
        since = f"{found.retired_at:%Y-%m-%d %H:%M} UTC"
        raise Refused(Code.STATE_CONFLICT, f"{found} was retired on {since}, which is final.")
    return found


def _change(node: Node, now: datetime, **fields: Any) -> Node:
    for name, value in fields.items():
        setattr(node, name, value)
    node.version += 1
    node.updated_at = now
    node.save(update_fields=[*fields, "version", "updated_at"])
    return node


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
