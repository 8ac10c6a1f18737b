"""The home page: how the fleet is at a glance, what needs attention, what happened; a constant number of queries."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Count, IntegerField, Q, Sum, Value, When
from django.http import HttpRequest

from artifacts.admin.overview import overview
from nodes.admin.access import clock, may_act, may_read
from nodes.admin.flags import Flag, flags_of
from nodes.admin.fleet import FLAGS, fleet, is_, needs_attention
from nodes.admin.pictures import Line, Picture
from nodes.audit import events
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import Accelerator, ControlPlane, Node
from nodes.wording import relative, size, span

LOOKS_BACK = timedelta(hours=24)
EVENTS_READ = 5000  # of a day's changes in liveness; a fleet that flaps more is drawn from where they begin
ATTENTION_SHOWN = 12
HISTORY_SHOWN = 12

BECOMES = {
    EventType.NODE_ONLINE: Liveness.ONLINE,
    EventType.NODE_RETURNED: Liveness.ONLINE,
    EventType.NODE_STALE: Liveness.STALE,
    EventType.NODE_OFFLINE: Liveness.OFFLINE,
    EventType.NODE_STOPPED: Liveness.OFFLINE,
}
WAS = {
    EventType.NODE_ONLINE: Liveness.OFFLINE,
    EventType.NODE_STALE: Liveness.ONLINE,
    EventType.NODE_OFFLINE: Liveness.STALE,
    EventType.NODE_STOPPED: Liveness.ONLINE,
}


@dataclass(frozen=True, slots=True)
class Concern:
    """A node that needs attention, with its most urgent flags."""

    node: Node
    flags: list[Flag]


def home(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The home page's context; nothing of the fleet for those who may not read it."""
    context |= {"title": "Home", "trail": [("Home", "")], "may_read": may_read(request)}
    if not may_read(request):
        return context
    now = clock()
    counts = _counts(now)
    hardware = Accelerator.objects.filter(node__retired_at=None, kind="gpu").aggregate(
        gpus=Count("pk", filter=Q(missing_since=None)),
        missing=Count("pk", filter=Q(missing_since__isnull=False)),
        vram=Sum("memory_bytes", filter=Q(missing_since=None)),
    )
    total = counts["total"]
    models = overview(now)
    return context | {
        "now": now,
        "may_act": may_act(request),
        "counts": counts,
        "shares": _shares(counts),
        "gpus": hardware["gpus"],
        "gpus_missing": hardware["missing"],
        "vram": size(hardware["vram"]) if hardware["vram"] else "—",
        "attention": _attention(now) if counts["attention"] else [],
        "attention_more": max(counts["attention"] - ATTENTION_SHOWN, 0) + models.concerned - len(models.concerns),
        "models": models,
        "concerned": counts["attention"] + models.concerned,
        "plane": _plane(now),
        "picture": _online_over_time(now, counts["online"]) if total else None,
        "events": list(events()[:HISTORY_SHOWN]),
    }


def _counts(now: datetime) -> dict[str, int]:
    silent = Q(heartbeat__stopped_at__isnull=True)
    counted = {
        "total": Q(),
        "online": is_(Liveness.ONLINE, now),
        "stale": is_(Liveness.STALE, now),
        "offline": is_(Liveness.OFFLINE, now) & silent,
        "stopped": is_(Liveness.OFFLINE, now) & ~silent,
        "disabled": Q(enabled=False),
        "conflicts": FLAGS["conflict"][1],
        "protocol": FLAGS["protocol"][1],
        "held_back": FLAGS["held_back"][1],
        "rotating": FLAGS["rotation"][1],
        "attention": needs_attention(now),
    }
    one = {
        name: Sum(Case(When(condition, then=Value(1)), default=Value(0), output_field=IntegerField()))
        for name, condition in counted.items()
        if name != "total"
    }
    found: dict[str, int | None] = Node.objects.filter(retired_at=None).aggregate(total=Count("pk"), **one)
    return {name: count or 0 for name, count in found.items()}


def _shares(counts: dict[str, int]) -> list[tuple[str, str, str]]:
    """The bar's pieces: state, where it begins and how wide it is, in percent."""
    begin, pieces = 0.0, []
    for state in ("online", "stale", "stopped", "offline"):
        width = 100 * counts[state] / counts["total"] if counts["total"] else 0
        if width:
            pieces.append((state, f"{begin:.3f}%", f"{width:.3f}%"))
        begin += width
    return pieces


def _attention(now: datetime) -> list[Concern]:
    order = Case(
        When(identity_conflict_at__isnull=False, then=Value(0)),
        When(protocol_refused_at__isnull=False, then=Value(1)),
        When(is_(Liveness.OFFLINE, now), then=Value(2)),
        When(is_(Liveness.STALE, now), then=Value(3)),
        default=Value(4),
        output_field=IntegerField(),
    )
    nodes = fleet(now).filter(needs_attention(now)).order_by(order, "display_name", "pk")[:ATTENTION_SHOWN]
    return [Concern(node, [flag for flag in flags_of(node, now) if flag.urgent][:3]) for node in nodes]


@dataclass(frozen=True, slots=True)
class Plane:
    """The control plane's own health."""

    tone: str
    word: str
    detail: str
    interval: str
    swept_at: datetime | None


def _plane(now: datetime) -> Plane:
    row = ControlPlane.objects.filter(id=1).first()
    swept = row.swept_at if row else None
    interval = span(
        timedelta(seconds=row.interval_seconds if row and row.interval_seconds else 0) or settings.HEARTBEAT_INTERVAL
    )
    if swept is None:
        return Plane("warning", "no sweep yet", "The worker has not run yet: is Celery up?", interval, None)
    late = now - swept > max(3 * settings.SWEEP_INTERVAL, timedelta(seconds=30))
    if late:
        detail = f"The last sweep was {relative(swept, now)}: is the Celery worker up? What you see is still right."
        return Plane("danger", "sweep is late", detail, interval, swept)
    return Plane("success", "healthy", "", interval, swept)


def _online_over_time(now: datetime, online: int) -> Picture:
    """How many nodes were online, told backwards from the history of the last day."""
    since = now - LOOKS_BACK
    told = list(
        events()
        .filter(at__gte=since, at__lte=now, type__in=[*BECOMES, EventType.NODE_RETIRED], node_id__isnull=False)
        .order_by("-at", "-position")
        .values_list("node_id", "type", "at", "details")[:EVENTS_READ]
    )
    begin = since if len(told) < EVENTS_READ else told[-1][2]
    changes = changes_online(reversed(told))
    count = max(online - sum(change for _, change in changes), 0)
    points: list[tuple[datetime, float | None]] = [(begin, float(count))]
    for at, change in changes:
        count += change
        points.append((at, float(max(count, 0))))
    points.append((now, float(online)))
    return Picture("Nodes online", "", since, now, [Line("Online", thinned(points))], step=True, filled=True)


def changes_online(told: Iterable[tuple[UUID | None, str, datetime, dict[str, Any]]]) -> list[tuple[datetime, int]]:
    """When the count of nodes online went up or down, out of events in order."""
    states: dict[UUID | None, Liveness] = {}
    changes: list[tuple[datetime, int]] = []
    for node, kind, at, details in told:
        type_ = EventType(kind)
        if type_ is EventType.NODE_RETIRED:
            if states.get(node) is Liveness.ONLINE:
                changes.append((at, -1))
            states[node] = Liveness.OFFLINE
            continue
        before = states.get(node) or _was(type_, details)
        states[node] = after = BECOMES[type_]
        if (before is Liveness.ONLINE) != (after is Liveness.ONLINE):
            changes.append((at, 1 if after is Liveness.ONLINE else -1))
    return changes


def _was(type_: EventType, details: dict[str, Any]) -> Liveness:
    """What a node was before its first event in the picture."""
    if type_ is EventType.NODE_RETURNED:
        said = details.get("was")
        return Liveness(said) if said in set(Liveness) else Liveness.OFFLINE
    return WAS[type_]


def thinned(points: list[tuple[datetime, float | None]], most: int = 400) -> list[tuple[datetime, float | None]]:
    """At most about so many points: of each slot the last, and the lowest where it dipped."""
    if len(points) <= most:
        return points
    begin, end = points[0][0], points[-1][0]
    slot = max((end - begin) / (most // 2), timedelta(seconds=1))
    kept: list[tuple[datetime, float | None]] = []
    held: list[tuple[datetime, float | None]] = []
    for point in [*points, (end + slot, None)]:
        if held and (point[1] is None or (point[0] - begin) // slot != (held[0][0] - begin) // slot):
            lowest = min(held, key=lambda one: one[1] or 0.0)
            kept += [lowest, held[-1]] if lowest is not held[-1] else [lowest]
            held = []
        held.append(point)
    return kept
