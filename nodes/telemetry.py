"""What nodes measure over time, kept bounded: raw for a day, one of each ten minutes for thirty days, then gone."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction

from agent.wire import Telemetry, encode
from nodes.models import Node, TelemetrySample

RAW_FOR = timedelta(days=1)
SLOT = timedelta(minutes=10)
THINNED_FOR = timedelta(days=30)

_KEEP = """
    INSERT INTO nodes_telemetrysample (node_id, at, thinned, data)
    SELECT {node}, {at}, {no}, {data}
     WHERE NOT EXISTS (SELECT 1 FROM nodes_telemetrysample WHERE node_id = {node} AND at > {since})
"""


def keep(node_id: UUID, sample: Telemetry, *, now: datetime) -> bool:
    """Keep a sample, dated ``now``, unless one was kept within the last half of the telemetry interval.

    Returns:
        Whether it was kept.
    """
    connection = connections[settings.BEATS_DATABASE]
    postgres = connection.vendor == "postgresql"
    adapt = connection.ops.adapt_datetimefield_value
    node: UUID | str = node_id if postgres else node_id.hex
    since = now - settings.TELEMETRY_INTERVAL / 2
    with connection.cursor() as cursor:
        cursor.execute(_STATEMENT[postgres], (node, adapt(now), False, encode(sample).decode(), node, adapt(since)))
        return bool(cursor.rowcount == 1)


_STATEMENT = {
    True: _KEEP.format(
        node="%s::uuid", at="%s::timestamptz", no="%s::boolean", data="%s::jsonb", since="%s::timestamptz"
    ),
    False: _KEEP.format(node="%s", at="%s", no="%s", data="%s", since="%s"),
}


def thin(*, now: datetime, batch: int = 1000, batches: int = 200) -> int:
    """Thin out what is older than a day and drop what is older than thirty; how many samples went.

    Each batch is a transaction of its own; what a call does not reach within ``batches``, the next one does. Two at
    once do no harm: at worst a slot keeps a second sample.
    """
    gone = 0
    for _ in range(batches):
        looked, dropped = _thin_batch(now - RAW_FOR, batch)
        gone += dropped
        if looked < batch:
            break
    for _ in range(batches):
        old = TelemetrySample.objects.filter(thinned=True, at__lt=now - THINNED_FOR).order_by("at")
        dropped, _kinds = TelemetrySample.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()
        gone += dropped
        if dropped < batch:
            break
    return gone


def _thin_batch(until: datetime, batch: int) -> tuple[int, int]:
    """The oldest raw samples: the first of each node's slot stays, the others go; how many were seen, and went."""
    with transaction.atomic():
        raw = TelemetrySample.objects.filter(thinned=False, at__lt=until).order_by("at", "pk")
        seen = list(raw.select_for_update(skip_locked=True).values_list("pk", "node_id", "at")[:batch])
        if not seen:
            return 0, 0
        first, last = _slot(seen[0][2]), _slot(seen[-1][2]) + SLOT
        standing = TelemetrySample.objects.filter(thinned=True, at__gte=first, at__lt=last)
        taken = {(node, _slot(at)) for node, at in standing.values_list("node_id", "at")}
        stay: list[int] = []
        go: list[int] = []
        for pk, node, at in seen:
            place = (node, _slot(at))
            (go if place in taken else stay).append(pk)
            taken.add(place)
        TelemetrySample.objects.filter(pk__in=stay).update(thinned=True)
        TelemetrySample.objects.filter(pk__in=go).delete()
    return len(seen), len(go)


def _slot(at: datetime) -> datetime:
    """The ten minutes that an instant lies in."""
    return at - timedelta(seconds=at.timestamp() % SLOT.total_seconds())


def latest(node: Node) -> TelemetrySample | None:
    """The newest sample of a node."""
    return TelemetrySample.objects.filter(node=node).order_by("-at").first()
