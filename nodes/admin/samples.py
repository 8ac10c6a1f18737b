"""The pictures of a node over time, out of its telemetry samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nodes import series
from nodes.admin.hardware import Device
from nodes.admin.pictures import Line, Picture
from nodes.models import Node
from nodes.wording import value_of

POINTS = 150  # about so many are drawn of each line


@dataclass(frozen=True, slots=True)
class Span:
    """How far a picture looks back."""

    label: str
    length: timedelta


SPANS = {
    "1h": Span("1 hour", timedelta(hours=1)),
    "24h": Span("24 hours", timedelta(hours=24)),
    "30d": Span("30 days", timedelta(days=30)),
}

GIB = 1024**3
DRAWN = series.Metrics(
    host=("cpu_percent", "memory_used_bytes"),
    accelerator=("utilization_percent", "memory_used_bytes", "temperature_celsius", "power_watts"),
    volume=(),
)


def pictures(node: Node, devices: Sequence[Device], chosen: Span, now: datetime) -> list[Picture]:
    """What the accelerators and the host measured in the span before now."""
    drawn = series.draw(node, since=now - chosen.length, until=now, points=POINTS, metrics=DRAWN)
    names = {device.row.key: device.name for device in devices}
    keys = [key for key in names if key in drawn.accelerators]
    keys += sorted(drawn.accelerators.keys() - names.keys())

    def of_devices(title: str, unit: str, metric: str, *, top: float | None = None, scale: float = 1) -> Picture:
        lines = [_line(names.get(key, key), drawn.accelerators[key].get(metric, ()), scale) for key in keys]
        return Picture(title, unit, drawn.since, drawn.until, _measured(lines), top=top)

    def of_host(title: str, unit: str, metric: str, *, top: float | None = None, scale: float = 1) -> Picture:
        lines = [_line(title, drawn.host.get(metric, ()), scale)]
        return Picture(title, unit, drawn.since, drawn.until, lines, top=top, filled=True)

    host = [
        of_host("Processor load", "%", "cpu_percent", top=100),
        of_host("Memory in use", "GiB", "memory_used_bytes", scale=GIB, top=_memory(node.facts or {})),
    ]
    if not devices:
        return host
    return [
        of_devices("GPU utilisation", "%", "utilization_percent", top=100),
        of_devices("GPU memory in use", "GiB", "memory_used_bytes", scale=GIB),
        of_devices("GPU temperature", "°C", "temperature_celsius", top=100),
        of_devices("GPU power", "W", "power_watts"),
        *host,
    ]


def _line(label: str, points: Sequence[series.Point], scale: float) -> Line:
    return Line(
        label,
        [(datetime.fromtimestamp(at, UTC), None if value is None else value / scale) for at, value in points],
    )


def _measured(lines: list[Line]) -> list[Line]:
    """Without those that were never measured, such as the power of a MIG instance."""
    return [line for line in lines if any(value is not None for _, value in line.points)]


def _memory(facts: Mapping[str, object]) -> float | None:
    """The host's memory, as the picture's upper end."""
    host = facts.get("host")
    total = value_of(host.get("memory_visible_bytes")) if isinstance(host, Mapping) else None
    return None if total is None else total / GIB
