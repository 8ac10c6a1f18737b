"""Hearing a node: a beat that comes as expected costs one UPDATE; all that is unusual is worked out under locks."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction

from agent.protocol import VERSION, Code
from agent.wire import Beat, BeatReply, Goodbye
from nodes import continuity, holding, labels, refusals, statements
from nodes.audit import record
from nodes.callers import SYSTEM, NodeCaller, Refused
from nodes.event_types import EventType
from nodes.liveness import Liveness, deadlines, due
from nodes.models import BootSession, Heartbeat, Node

BOOTS_KEPT = 32  # per node; an older copy that wakes up counts as a new boot
LATE = timedelta(seconds=30)  # how long a beat that was sent before its boot was superseded may be under way

_TOUCH = """
    UPDATE nodes_heartbeat
       SET sequence = %s, last_heard_at = %s, stale_at = %s, offline_at = %s, interval_seconds = %s,
           clock_skew_seconds = %s
     WHERE node_id = %s AND boot_id = %s AND sequence < %s AND liveness = 'online'
"""


def receive(beat: Beat, *, by: NodeCaller, now: datetime) -> BeatReply:
    """Hear a beat and say what to do next.

    Raises:
        Refused: ``identity_conflict`` when a boot that was superseded speaks again, ``node_disabled`` or
            ``node_retired`` where an operator was faster.
    """
    interval = continuity.granted_interval(now)
    if not (_expected(beat, by, now) and _touch(beat, by, now, interval)):
        continuity.resume(now)
        refusal = _arrive(beat, by, now, interval)
        if refusal is not None:
            raise refusal
    return BeatReply(
        heartbeat_interval_seconds=interval.total_seconds(),
        telemetry_interval_seconds=settings.TELEMETRY_INTERVAL.total_seconds(),
        want_facts=by.want_facts or not by.facts_digest or beat.facts_digest not in {"", by.facts_digest},
        renew_credential=by.renew_credential,
        work=by.work_waits,
    )


def _expected(beat: Beat, by: NodeCaller, now: datetime) -> bool:
    """Whether nothing but the clock has moved since the beat before, as far as the caller's one query saw."""
    return (
        by.liveness is Liveness.ONLINE
        and by.boot_id == beat.boot_id
        and by.sequence < beat.sequence
        and by.stale_at is not None
        and now < by.stale_at
        and not by.refused
    )


def _touch(beat: Beat, by: NodeCaller, now: datetime, interval: timedelta) -> bool:
    limits = deadlines(now, interval)
    connection = connections[settings.BEATS_DATABASE]
    adapt = connection.ops.adapt_datetimefield_value
    key = _same if connection.features.has_native_uuid_field else _hex
    told = (
        beat.sequence,
        adapt(now),
        adapt(limits.stale_at),
        adapt(limits.offline_at),
        interval.total_seconds(),
        _skew(beat, now),
        key(by.node_id),
        key(beat.boot_id),
        beat.sequence,
    )
    return statements.changed(_TOUCH, told) == 1


def _same(key: UUID) -> UUID:
    return key


def _hex(key: UUID) -> str:
    return key.hex


def _skew(beat: Beat, now: datetime) -> float:
    return round((beat.sent_at - now).total_seconds(), 3)


def _arrive(beat: Beat, by: NodeCaller, now: datetime, interval: timedelta) -> Refused | None:
    """A beat that changes something; the refusal is returned, not raised, so that its flag is committed."""
    odd = labels.text_fault(beat.agent_version, "agent_version", least=1, most=64)
    if odd is not None:
        return Refused(Code.INVALID, f"{odd.field}: {odd.detail}", errors=[odd])
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=by.node_id)
        forbidden = refusals.forbidden(node)
        if forbidden is not None:
            return refusals.note(by, forbidden, now=now)
        heart = Heartbeat.objects.select_for_update().get(node=node)
        restarted = heart.boot_id != beat.boot_id
        if restarted:
            known = BootSession.objects.filter(node=node, boot_id=beat.boot_id).first()
            if known is not None:
                return _copy_speaks(node, heart, known, beat, by, now)
            _take_over(node, beat, by, now)
        elif beat.sequence <= heart.sequence:
            return None  # late or sent twice: it says nothing new
        _tell_arrival(node, heart, restarted=restarted, by=by, now=now)
        _tell_changes(node, beat, by=by, now=now)
        limits = deadlines(now, interval)
        back = heart.liveness != Liveness.ONLINE
        Heartbeat.objects.filter(node=node).update(
            liveness=Liveness.ONLINE,
            boot_id=beat.boot_id,
            sequence=beat.sequence,
            last_heard_at=now,
            stale_at=limits.stale_at,
            offline_at=limits.offline_at,
            interval_seconds=interval.total_seconds(),
            clock_skew_seconds=_skew(beat, now),
            online_since=now if back or restarted else heart.online_since,
            stopped_at=None,
            stop_reason="",
        )
    return None


def _take_over(node: Node, beat: Beat, by: NodeCaller, now: datetime) -> None:
    """A new process start speaks for the node from now on; a crash is no conflict."""
    BootSession.objects.filter(node=node, superseded_at=None).update(superseded_at=now)
    BootSession.objects.create(node=node, boot_id=beat.boot_id, first_heard_at=now, address=by.address)
    kept = BootSession.objects.filter(node=node).order_by("-first_heard_at", "-pk").values_list("pk", flat=True)
    BootSession.objects.filter(node=node).exclude(pk__in=list(kept[:BOOTS_KEPT])).delete()


def _copy_speaks(
    node: Node, heart: Heartbeat, known: BootSession, beat: Beat, by: NodeCaller, now: datetime
) -> Refused | None:
    """A superseded boot speaks: a beat that was merely under way is dropped; a later one is a copy of the identity."""
    since = known.superseded_at or now
    under_way = (beat.sent_at - since).total_seconds() <= (heart.clock_skew_seconds or 0)  # sent before the takeover
    if not (under_way and now <= since + LATE) and node.identity_conflict_at is None:
        copies = {
            "boot_id": str(beat.boot_id),
            "address": by.address,
            "speaking": str(heart.boot_id),
            "speaking_from": node.address,
        }
        Node.objects.filter(pk=node.pk).update(identity_conflict_at=now, identity_conflict=copies)
        record(EventType.IDENTITY_CONFLICT, by=by, about=node, at=now, **copies)
    return refusals.superseded(since)


def _tell_arrival(node: Node, heart: Heartbeat, *, restarted: bool, by: NodeCaller, now: datetime) -> None:
    if heart.last_heard_at is None:
        record(EventType.NODE_ONLINE, by=by, about=node, at=now)
        return
    was = Liveness(heart.liveness)
    for step in due(was, heart.deadlines(), now):
        was = step.to
        record(
            continuity.SILENCE[step.to],
            by=SYSTEM,
            about=node,
            at=step.at,
            last_heard_at=heart.last_heard_at,
            noticed_at=now,
        )
    heart.liveness = was
    if was is not Liveness.ONLINE:
        holding.tell(
            EventType.NODE_RETURNED,
            by=by,
            about=node,
            at=now,
            was=was,
            outage_seconds=now - (heart.stopped_at or heart.last_heard_at),
            silent_since=heart.stopped_at or heart.last_heard_at,
            planned=heart.stopped_at is not None,
            restarted=restarted,
        )
    elif restarted:
        holding.tell(EventType.NODE_RESTARTED, by=by, about=node, at=now, silent_seconds=now - heart.last_heard_at)


def _tell_changes(node: Node, beat: Beat, *, by: NodeCaller, now: datetime) -> None:
    """What this contact mends or changes on the node's own row."""
    if node.refused_code:
        holding.tell(
            EventType.NODE_ACCEPTED_AGAIN, by=by, about=node, at=now, was=node.refused_code, since=node.refused_at
        )
    if node.agent_version not in {"", beat.agent_version}:
        holding.tell(EventType.AGENT_UPDATED, by=by, about=node, at=now, old=node.agent_version, new=beat.agent_version)
    Node.objects.filter(pk=node.pk).update(
        refused_code="",
        refused_at=None,
        protocol_refused="",
        protocol_refused_at=None,
        protocol_version=VERSION,
        agent_version=beat.agent_version,
        address=by.address,
    )


def farewell(goodbye: Goodbye, *, by: NodeCaller, now: datetime) -> None:
    """A planned stop: offline at once, and told apart from silence. A superseded boot's word is not heard."""
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=by.node_id)
        stopped = (
            Heartbeat.objects.filter(node=node, boot_id=goodbye.boot_id)
            .exclude(liveness=Liveness.OFFLINE)
            .update(liveness=Liveness.OFFLINE, stopped_at=now, stop_reason=goodbye.reason)
        )
        if stopped:
            holding.tell(EventType.NODE_STOPPED, by=by, about=node, at=now, reason=goodbye.reason)


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did."""

    stale: int
    offline: int
    gap: timedelta | None


def sweep(*, now: datetime) -> Swept:
    """Mark the overdue, each at its own due instant; two sweeps at once do no harm. Called every few seconds."""
    gap = continuity.resume(now)
    stale, offline = continuity.mark_overdue(now, noticed_at=now)
    continuity.swept(now)
    return Swept(stale, offline, gap)
