"""What nodes measure over time, kept bounded: raw for a day, one of each ten minutes for thirty days, then gone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction

from agent.wire import Telemetry, encode
from nodes.models import Heartbeat, Node, TelemetrySample

RAW_FOR = timedelta(days=1)
SLOT = timedelta(minutes=10)
THINNED_FOR = timedelta(days=30)

MAX_POINTS = 1000
DEFAULT_POINTS = 300

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


Point = tuple[float, float | None]
"""Epoch seconds and the value; None where nothing was measured, which is never 0."""

HOST = ("cpu_percent", "load_1m", "memory_used_bytes", "memory_available_bytes")
ACCELERATOR = (
    "utilization_percent",
    "memory_used_bytes",
    "memory_free_bytes",
    "temperature_celsius",
    "power_watts",
    "clock_sm_mhz",
    "clock_memory_mhz",
    "fan_percent",
    "ecc_corrected",
    "ecc_uncorrected",
    "processes",
)
VOLUME = ("free_bytes",)


@dataclass(slots=True)
class Series:
    """Lines to draw: by metric, and by accelerator key or volume name."""

    since: datetime
    until: datetime
    step: timedelta
    host: dict[str, list[Point]] = field(default_factory=dict)
    accelerators: dict[str, dict[str, list[Point]]] = field(default_factory=dict)
    volumes: dict[str, dict[str, list[Point]]] = field(default_factory=dict)

    @property
    def step_seconds(self) -> float:
        """How long a step is."""
        return self.step.total_seconds()


def series(node: Node, *, since: datetime, until: datetime, points: int = DEFAULT_POINTS) -> Series:
    """At most about ``points`` points a line: the mean of each step; a silence is a point without a value.

    Every line has the same instants. A metric that was asked for and could not be read has no value there.
    """
    step = max((until - since) / points, timedelta(seconds=1))
    drawn = Series(since, until, step)
    heart = Heartbeat.objects.filter(node=node).values_list("interval_seconds", flat=True).first()
    spacing = max(settings.TELEMETRY_INTERVAL, timedelta(seconds=heart or 0), step)
    before: tuple[datetime, bool] | None = None
    for samples in _steps(node, since, until, step):
        at = samples[0][0] + sum((sample[0] - samples[0][0] for sample in samples), timedelta()) / len(samples)
        thinned = any(sample[1] for sample in samples)
        if before is not None:
            usual = max(spacing, SLOT) if thinned or before[1] else spacing
            if at - before[0] > 2.5 * usual:
                _draw(drawn, before[0] + (at - before[0]) / 2, [])
        _draw(drawn, at, [sample[2] for sample in samples])
        before = at, thinned
    return drawn


Sample = tuple[datetime, bool, dict[str, Any]]


def _steps(node: Node, since: datetime, until: datetime, step: timedelta) -> Iterator[list[Sample]]:
    """The samples of each step that has any, oldest first."""
    rows = TelemetrySample.objects.filter(node=node, at__gte=since, at__lt=until).order_by("at")
    held: list[Sample] = []
    place = -1
    for at, thinned, data in rows.values_list("at", "thinned", "data").iterator(500):
        here = int((at - since) / step)
        if held and here != place:
            yield held
            held = []
        place = here
        held.append((at, thinned, data))
    if held:
        yield held


def _draw(drawn: Series, at: datetime, samples: Sequence[dict[str, Any]]) -> None:
    """One instant on every line; a line that begins or ends has no value before and after."""
    epoch = round(at.astimezone(UTC).timestamp(), 3)
    drawn_before = next((len(line) for line in drawn.host.values()), 0)
    _draw_group(drawn.host, HOST, [sample["host"] for sample in samples], epoch, [])
    earlier = [point[0] for point in drawn.host[HOST[0]][:drawn_before]]
    for group, metrics, part, name in (
        (drawn.accelerators, ACCELERATOR, "accelerators", "key"),
        (drawn.volumes, VOLUME, "volumes", "name"),
    ):
        measured: dict[str, list[dict[str, Any]]] = {key: [] for key in group}
        for sample in samples:
            for item in sample.get(part, []):
                measured.setdefault(item[name], []).append(item)
        for key, items in measured.items():
            _draw_group(group.setdefault(key, {}), metrics, items, epoch, earlier)


def _draw_group(
    lines: dict[str, list[Point]],
    metrics: Sequence[str],
    items: Sequence[dict[str, Any]],
    epoch: float,
    earlier: Sequence[float],
) -> None:
    for metric in metrics:
        line = lines.setdefault(metric, [(instant, None) for instant in earlier])
        values = [value for item in items if (value := item.get(metric, {}).get("value")) is not None]
        mean = sum(values) / len(values) if values else None
        line.append((epoch, mean if mean is None else round(mean) if metric.endswith("_bytes") else round(mean, 3)))
