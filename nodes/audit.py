"""The one door to the history: append-only, hash-chained, written in the transaction of what it tells."""

import hashlib
import json
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from nodes import allowance
from nodes.callers import Caller, NodeCaller
from nodes.event_types import EventType
from nodes.models import AuditEvent, AuditHead, Node

BEGINNING = "0" * 64
"""The hash before the first event."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom or what an event is about; its label is frozen, for the history outlives its subjects."""

    kind: str
    id: str
    label: str
    node_id: uuid.UUID | None = None

    @classmethod
    def node(cls, node: Node) -> "Subject":
        """A node as it is called now."""
        return cls("node", str(node.pk), node.display_name, node.pk)


@dataclass(frozen=True, slots=True)
class Entry:
    """What ``record`` is told, for those who tell several things at once."""

    type: EventType
    by: Caller
    about: Subject
    at: datetime
    details: dict[str, Any]
    counted: bool = True


CONTROL_PLANE = Subject("control_plane", "control-plane", "control plane")


def record(type: EventType, *, by: Caller, about: Subject | Node, at: datetime, **details: Any) -> AuditEvent:
    """Append one event, in the caller's transaction; the lock on the chain's head is the last that an act takes.

    Args:
        type: what happened.
        by: who did it.
        about: whom it concerns.
        at: when it happened (aware), which may be earlier than now.
        details: what else a reader needs; JSON values, dates, durations (told in seconds) and UUIDs. Never a secret.

    Raises:
        RuntimeError: outside a transaction, where the change and its history could part.
    """
    subject = Subject.node(about) if isinstance(about, Node) else about
    return record_many([Entry(type, by, subject, at, details)])[0]


def record_uncounted(type: EventType, *, by: Caller, about: Subject | Node, at: datetime, **details: Any) -> AuditEvent:
    """As ``record``, but not against what a node may tell by itself: an operator's order, or a count, bounds it."""
    subject = Subject.node(about) if isinstance(about, Node) else about
    return record_many([Entry(type, by, subject, at, details, counted=False)])[0]


def record_many(entries: Sequence[Entry]) -> list[AuditEvent]:
    """Append several events as ``record`` does, at the cost of one."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("history belongs in the transaction of the change that it tells")
    if not entries:
        return []
    _spend(entries)
    AuditHead.objects.get_or_create(id=1, defaults={"hash": BEGINNING})
    head = AuditHead.objects.select_for_update().get(id=1)
    made: list[AuditEvent] = []
    previous, recorded_at = head.hash, datetime.now(UTC)  # when it was written down is the one thing seen here
    for position, entry in enumerate(entries, head.position + 1):
        event = _event(entry, position, previous, recorded_at)
        previous = event.hash = hash_of(event)
        made.append(event)
    AuditEvent.objects.bulk_create(made)
    AuditHead.objects.filter(id=1).update(position=made[-1].position, hash=previous)
    return made


def _spend(entries: Sequence[Entry]) -> None:
    """What nodes tell of themselves counts against their allowance; before the head is locked, the last lock of all."""
    told = Counter(entry.by.node_id for entry in entries if entry.counted and isinstance(entry.by, NodeCaller))
    for node_id, events in told.items():
        allowance.spend(node_id, events, now=entries[0].at)


def _event(entry: Entry, position: int, previous: str, recorded_at: datetime) -> AuditEvent:
    return AuditEvent(
        position=position,
        type=entry.type,
        at=entry.at,
        recorded_at=recorded_at,
        actor_kind=entry.by.kind,
        actor_role=entry.by.role,
        actor_id=entry.by.id,
        actor_label=entry.by.label[:255],
        address=entry.by.address[:64],
        request_id=entry.by.request_id[:64],
        about_kind=entry.about.kind,
        about_id=entry.about.id,
        about_label=entry.about.label[:255],
        node_id=entry.about.node_id,
        details=plain(entry.details),
        previous_hash=previous,
    )


def plain(value: Any) -> Any:
    """A JSON value that every database gives back as it was, so that the chain can be proven again."""
    match value:
        case bool() | None | int():
            return value
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case float():
            return _plain_number(value)
        case timedelta():
            return plain(value.total_seconds())
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date() | uuid.UUID():
            return str(value)
        case dict():
            return {plain(str(name)): plain(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    raise TypeError(f"the history holds no {type(value).__name__}")


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and halves of surrogate pairs, which PostgreSQL's JSON refuses


def _plain_number(value: float) -> int | float | str:
    """Six decimals at most; whole numbers whole, so that no -0.0 or 1e22 comes back as another text."""
    if not math.isfinite(value):
        return str(value)
    rounded = round(value, 6)
    return int(rounded) if rounded.is_integer() else rounded


def hash_of(event: AuditEvent) -> str:
    """SHA-256 (hex) over the event before and everything that this one says."""
    said = {
        "position": event.position,
        "type": str(event.type),
        "at": event.at.astimezone(UTC).isoformat(),
        "recorded_at": event.recorded_at.astimezone(UTC).isoformat(),
        "actor": [event.actor_kind, event.actor_role, event.actor_id, event.actor_label],
        "from": [event.address, event.request_id],
        "about": [event.about_kind, event.about_id, event.about_label, str(event.node_id or "")],
        "details": event.details,
        "previous": event.previous_hash,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Broken:
    """A place where the chain does not hold."""

    position: int
    why: str


def verify(chunk: int = 2000) -> Iterator[int | Broken]:
    """Walk the whole chain: yields each proven position, or where and why it is broken, and then goes on."""
    previous, expected = BEGINNING, 1
    for event in events().order_by("position").iterator(chunk):
        if event.position != expected:
            yield Broken(expected, f"events {expected} to {event.position - 1} are missing")
        if event.previous_hash != previous:
            yield Broken(event.position, "does not follow from the event before")
        elif event.hash != hash_of(event):
            yield Broken(event.position, "was changed after it was recorded")
        else:
            yield event.position
        previous, expected = event.hash, event.position + 1
    head = AuditHead.objects.filter(id=1).first()
    if head is not None and (head.position, head.hash) != (expected - 1, previous):
        yield Broken(head.position, f"the history ends at {expected - 1}, its head says {head.position}")
    elif head is None and expected > 1:
        yield Broken(expected - 1, "the history has lost its head")


def events() -> QuerySet[AuditEvent]:
    """All events, newest first."""
    return AuditEvent.objects.all()


def broken(walk: Iterable[int | Broken]) -> list[Broken]:
    """Only the broken places of a walk."""
    return [step for step in walk if isinstance(step, Broken)]
