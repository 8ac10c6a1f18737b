"""Lines out of what a node measured over time: the means of equal steps, with the silences between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from types import GenericAlias
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import TextField
from django.db.models.functions import Cast

from nodes.models import Heartbeat, Node, TelemetrySample
from nodes.telemetry import SLOT

MAX_POINTS = 1000
DEFAULT_POINTS = 300
READ_OF_A_STEP = 6  # samples, evenly spread: a month of sixteen GPUs is drawn without reading all of it

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


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is drawn; whatever else a sample holds is not even decoded."""

    host: tuple[str, ...] = HOST
    accelerator: tuple[str, ...] = ACCELERATOR
    volume: tuple[str, ...] = VOLUME


ALL = Metrics()


@dataclass(slots=True)
class Series:
    """Lines to draw: by metric, and by accelerator key or volume name."""

    since: datetime
    until: datetime
    step: timedelta
    host: dict[str, list[Point]] = field(default_factory=dict)
    accelerators: dict[str, dict[str, list[Point]]] = field(default_factory=dict)
    volumes: dict[str, dict[str, list[Point]]] = field(default_factory=dict)

    instants: list[float] = field(default_factory=list)  # epoch seconds, the same for every line

    @property
    def step_seconds(self) -> float:
        """How long a step is."""
        return self.step.total_seconds()


def draw(
    node: Node, *, since: datetime, until: datetime, points: int = DEFAULT_POINTS, metrics: Metrics = ALL
) -> Series:
    """At most about ``points`` points a line: the mean of each step; a silence is a point without a value.

    Every line has the same instants. A metric that was asked for and could not be read has no value there. Of a step
    with many samples the mean is that of six, spread over it.
    """
    step = max((until - since) / points, timedelta(seconds=1))
    drawn = Series(since, until, step)
    heart = Heartbeat.objects.filter(node=node).values_list("interval_seconds", flat=True).first()
    spacing = max(settings.TELEMETRY_INTERVAL, timedelta(seconds=heart or 0), step)
    steps = list(_steps(node, since, until, step))
    samples = _read([spread(seen, READ_OF_A_STEP) for seen in steps], metrics)
    before: tuple[datetime, bool] | None = None
    for seen, read in zip(steps, samples, strict=True):
        at = seen[0][1] + sum((one[1] - seen[0][1] for one in seen), timedelta()) / len(seen)
        thinned = any(one[2] for one in seen)
        if before is not None:
            usual = max(spacing, SLOT) if thinned or before[1] else spacing
            if at - before[0] > 2.5 * usual:
                _draw(drawn, before[0] + (at - before[0]) / 2, [], metrics)
        _draw(drawn, at, read, metrics)
        before = at, thinned
    return drawn


Seen = tuple[int, datetime, bool]
"""A sample's key, instant and whether it is thinned; its data stays in the database."""


def _steps(node: Node, since: datetime, until: datetime, step: timedelta) -> Iterator[list[Seen]]:
    """The samples of each step that has any, oldest first."""
    rows = TelemetrySample.objects.filter(node=node, at__gte=since, at__lt=until).order_by("at", "pk")
    held: list[Seen] = []
    place = -1
    for seen in rows.values_list("pk", "at", "thinned").iterator(2000):
        here = int((seen[1] - since) / step)
        if held and here != place:
            yield held
            held = []
        place = here
        held.append(seen)
    if held:
        yield held


def spread(seen: list[Seen], most: int) -> list[Seen]:
    """At most so many of them, evenly from the first to the last."""
    if len(seen) <= most:
        return seen
    return [seen[round(n * (len(seen) - 1) / (most - 1))] for n in range(most)]


def _read(steps: list[list[Seen]], metrics: Metrics) -> Iterator[list[Any]]:
    """What the samples of each step say, read as text and decoded to what is drawn."""
    decode = _decoder(metrics).decode
    wanted = [one[0] for seen in steps for one in seen]
    rows = TelemetrySample.objects.filter(pk__in=wanted).order_by("at", "pk")
    texts = rows.values_list(Cast("data", TextField()), flat=True).iterator(500)
    for seen in steps:  # both in the order of their instants
        yield [decode(text) for text in islice(texts, len(seen))]


class _Value(msgspec.Struct):
    """A stored reading, without the reason why it may be missing."""

    value: float | None = None


@cache
def _decoder(metrics: Metrics) -> "msgspec.json.Decoder[Any]":
    """Of stored samples: of each part the metrics that are drawn, and the name it goes by."""

    def part(name: str, drawn: Sequence[str], *key: tuple[str, type]) -> Any:
        return msgspec.defstruct(name, [*key, *((metric, _Value | None, None) for metric in drawn)])

    device = part("Device", metrics.accelerator, ("key", str))
    space = part("Space", metrics.volume, ("name", str))
    fields: list[Any] = [
        ("host", part("Host", metrics.host)),
        ("accelerators", GenericAlias(list, device), msgspec.field(default_factory=list)),
    ]
    if metrics.volume:
        fields.append(("volumes", GenericAlias(list, space), msgspec.field(default_factory=list)))
    return msgspec.json.Decoder(msgspec.defstruct("Sample", fields))


def _draw(drawn: Series, at: datetime, samples: Sequence[Any], metrics: Metrics) -> None:
    """One instant on every line; a line that begins or ends has no value before and after."""
    epoch = round(at.astimezone(UTC).timestamp(), 3)
    _draw_group(drawn.host, metrics.host, [sample.host for sample in samples], epoch, drawn.instants)
    for group, names, part, key in (
        (drawn.accelerators, metrics.accelerator, "accelerators", "key"),
        (drawn.volumes, metrics.volume, "volumes", "name"),
    ):
        if not names:
            continue
        measured: dict[str, list[Any]] = {known: [] for known in group}
        for sample in samples:
            for item in getattr(sample, part):
                measured.setdefault(getattr(item, key), []).append(item)
        for known, items in measured.items():
            _draw_group(group.setdefault(known, {}), names, items, epoch, drawn.instants)
    drawn.instants.append(epoch)


def _draw_group(
    lines: dict[str, list[Point]], metrics: Sequence[str], items: Sequence[Any], epoch: float, earlier: Sequence[float]
) -> None:
    for metric in metrics:
        line = lines.setdefault(metric, [(instant, None) for instant in earlier] if metric not in lines else [])
        readings = [getattr(item, metric) for item in items]
        values = [reading.value for reading in readings if reading is not None and reading.value is not None]
        mean = sum(values) / len(values) if values else None
        line.append((epoch, mean if mean is None else round(mean) if metric.endswith("_bytes") else round(mean, 3)))
