"""The control plane's own pulse: its sweeps, its absences, and the beat interval that it grants the fleet."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from nodes import liveness
from nodes.audit import CONTROL_PLANE, Entry, Subject, record, record_many
from nodes.callers import SYSTEM
from nodes.event_types import EventType
from nodes.liveness import Liveness, deadlines
from nodes.models import ControlPlane, Heartbeat, Node

BATCH = 500  # nodes marked in one transaction
GRANT_READ_EVERY = timedelta(seconds=10)
FLEET_COUNTED_EVERY = timedelta(seconds=60)

SILENCE = {Liveness.STALE: EventType.NODE_STALE, Liveness.OFFLINE: EventType.NODE_OFFLINE}


@dataclass(slots=True)
class _Grant:
    """The interval as this process last read it, so that a beat need not ask for it."""

    read_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    interval: timedelta = timedelta()


_grant = _Grant()


def granted_interval(now: datetime) -> timedelta:
    """The beat interval to grant now; read from the database at most every ten seconds."""
    if not _grant.read_at <= now < _grant.read_at + GRANT_READ_EVERY:
        seconds = ControlPlane.objects.filter(id=1).values_list("interval_seconds", flat=True).first()
        _grant.interval = max(timedelta(seconds=seconds or 0), settings.HEARTBEAT_INTERVAL)
        _grant.read_at = now
    return _grant.interval


def forget_grant() -> None:
    """Read the interval anew with the next beat."""
    _grant.read_at = datetime(1970, 1, 1, tzinfo=UTC)


def resume(now: datetime) -> timedelta | None:
    """Notice that the control plane itself was away, which is not the nodes' fault: one event, a fresh window for all.

    Away means that neither a sweep ran nor anybody was heard for longer than ``MODELFORGE_GAP_SECONDS``. Called by each
    sweep, by a web process before it serves, and by a beat that finds something unusual.

    Returns:
        How long it was away, or None.
    """
    plane = ControlPlane.objects.filter(id=1).first()
    if plane is None or plane.swept_at is None or now - plane.swept_at <= settings.GAP_AFTER:
        return None
    awake = _awake_until(plane.swept_at)
    if now - awake <= settings.GAP_AFTER:
        return None
    mark_overdue(awake, noticed_at=now)
    with transaction.atomic():
        plane = ControlPlane.objects.select_for_update().get(id=1)
        if plane.swept_at is None or now - max(plane.swept_at, awake) <= settings.GAP_AFTER:
            return None  # another process noticed first
        away = now - awake
        _fresh_window(now)  # before the history's head is locked, which is the last lock of all
        record(EventType.CONTROL_PLANE_GAP, by=SYSTEM, about=CONTROL_PLANE, at=now, since=awake, seconds=away)
        ControlPlane.objects.filter(id=1).update(swept_at=now)
    return away


def _awake_until(swept_at: datetime) -> datetime:
    """The last instant at which the control plane is known to have been at work."""
    heard = Heartbeat.objects.aggregate(at=Max("last_heard_at"))["at"]
    return max(swept_at, heard) if heard else swept_at


def _fresh_window(now: datetime) -> None:
    told = Heartbeat.objects.exclude(liveness=Liveness.OFFLINE)
    for seconds in told.order_by().values_list("interval_seconds", flat=True).distinct():
        limits = deadlines(now, timedelta(seconds=seconds))
        told.filter(interval_seconds=seconds).update(stale_at=limits.stale_at, offline_at=limits.offline_at)


def mark_overdue(until: datetime, *, noticed_at: datetime) -> tuple[int, int]:
    """Mark every node whose deadline had passed at ``until``, in batches; how many went stale and how many offline."""
    stale = offline = 0
    while True:
        with transaction.atomic():
            hearts = list(_overdue(until))
            entries, went = [], dict[Liveness, list[Heartbeat]]()
            for heart in hearts:
                for step in liveness.due(Liveness(heart.liveness), heart.deadlines(), until):
                    about = Subject("node", str(heart.node_id), heart.node.display_name, heart.node_id)
                    details = {"last_heard_at": heart.last_heard_at, "noticed_at": noticed_at}
                    entries.append(Entry(SILENCE[step.to], SYSTEM, about, step.at, details))
                    stale += step.to is Liveness.STALE
                    offline += step.to is Liveness.OFFLINE
                    heart.liveness = step.to
                went.setdefault(Liveness(heart.liveness), []).append(heart)
            for state, gone in went.items():
                Heartbeat.objects.filter(pk__in=[heart.pk for heart in gone]).update(liveness=state)
            record_many(sorted(entries, key=lambda entry: entry.at))
        if len(hearts) < BATCH:
            return stale, offline


def _overdue(until: datetime) -> list[Heartbeat]:
    """One batch, locked; found by a scan, for an index on what changes with every beat would cost more than it."""
    overdue = Heartbeat.objects.filter(
        Q(liveness=Liveness.ONLINE, stale_at__lte=until) | Q(liveness=Liveness.STALE, offline_at__lte=until)
    )
    return list(overdue.select_related("node").select_for_update(of=("self",), skip_locked=True)[:BATCH])


def swept(now: datetime) -> None:
    """Note that a sweep ran to its end, and grant the interval that the fleet's size asks for."""
    plane, _ = ControlPlane.objects.get_or_create(id=1, defaults={"swept_at": now})
    changes: dict[str, object] = {"swept_at": now}
    if plane.swept_at is not None and now - plane.swept_at > settings.GAP_AFTER:
        changes |= {"unswept_since": plane.swept_at, "unswept_until": now}
    if plane.counted_at is None or not plane.counted_at <= now < plane.counted_at + FLEET_COUNTED_EVERY:
        fleet = Node.objects.filter(retired_at=None).count()
        interval = liveness.granted_interval(
            fleet, shortest=settings.HEARTBEAT_INTERVAL, most_per_second=settings.MAX_HEARTBEATS_PER_SECOND
        )
        changes |= {"counted_at": now, "fleet": fleet, "interval_seconds": interval.total_seconds()}
    ControlPlane.objects.filter(id=1).update(**changes)


def ask_for_facts() -> int:
    """Ask every node for its facts with its next beat; how many were asked."""
    return Node.objects.filter(retired_at=None).update(want_facts=True)
