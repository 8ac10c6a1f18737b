"""Pictures over time as inline SVG: lines in a box that the page stretches, with words around it in HTML; pure."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

WIDE, HIGH = 1000, 240  # the drawing's own units; the page stretches them
COLOURS = 8
EVEN = [factor * 10**power for power in range(9) for factor in (2, 4, 6, 8, 10)]

Point = tuple[datetime, float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One measured thing over time, in order; None where it was not measured."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line as it is drawn."""

    label: str
    colour: int
    path: str
    area: str
    last: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Several lines over one span of time."""

    title: str
    unit: str
    since: datetime
    until: datetime
    lines: Sequence[Line]
    top: float | None = None  # the axis's end where it is known, such as 100 %
    step: bool = False  # holds between points, as a count does
    filled: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was measured."""
        return not any(value is not None for line in self.lines for _, value in line.points)

    @property
    def ceiling(self) -> float:
        """The axis's upper end: a round number above everything, or what is known."""
        highest = max((value for line in self.lines for _, value in line.points if value is not None), default=0.0)
        if self.top is not None and highest <= self.top:
            return self.top
        if self.step:  # whole things are counted: the middle of the axis is a whole number too
            return next(float(even) for even in EVEN if even >= highest)
        return rounded_up(highest) if highest > 0 else 1.0

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Three heights in percent from the top, with their words."""
        ceiling = self.ceiling
        return [(100 * (1 - part), _figure(ceiling * part)) for part in (1.0, 0.5, 0.0)]

    @property
    def times(self) -> list[tuple[float, str]]:
        """Five instants in percent from the left, with their words (UTC)."""
        length = self.until - self.since
        short = "%H:%M:%S" if length < timedelta(minutes=15) else "%H:%M"
        form = short if length <= timedelta(days=2) else "%b %-d"
        return [(25 * i, f"{(self.since + length * i / 4).astimezone(UTC):{form}}") for i in range(5)]

    @property
    def strokes(self) -> list[Stroke]:
        """Every line as SVG paths."""
        ceiling = self.ceiling
        drawn = []
        for position, line in enumerate(self.lines):
            runs = list(self._runs(line, ceiling))
            path = " ".join("M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in run) for run in runs)
            area = " ".join(
                f"M{run[0][0]:.1f},{HIGH} L"
                + " L".join(f"{x:.1f},{y:.1f}" for x, y in run)
                + f" L{run[-1][0]:.1f},{HIGH} Z"
                for run in runs
            )
            last = next((value for _, value in reversed(line.points) if value is not None), None)
            said = "—" if last is None else f"{_figure(last)} {self.unit}".strip()
            drawn.append(Stroke(line.label, position % COLOURS, path, area if self.filled else "", said))
        return drawn

    @property
    def data(self) -> str:
        """The points as JSON, for the tooltip under the pointer."""
        return json.dumps(
            {
                "since": self.since.timestamp(),
                "until": self.until.timestamp(),
                "unit": self.unit,
                "step": self.step,
                "lines": [
                    {
                        "label": line.label,
                        "points": [
                            [round(at.timestamp()), None if value is None else round(value, 2)]
                            for at, value in line.points
                        ],
                    }
                    for line in self.lines
                ],
            },
            separators=(",", ":"),
        )

    def _runs(self, line: Line, ceiling: float) -> Iterator[list[tuple[float, float]]]:
        """The unbroken pieces of a line, in the drawing's units; a lone point becomes a short dash."""
        run: list[tuple[float, float]] = []
        for at, value in line.points:
            if value is None:
                if run:
                    yield _visible(run)
                run = []
            if value is not None:
                x, y = self._x(at), HIGH * (1 - min(value, ceiling) / ceiling)
                if run and self.step:
                    run.append((x, run[-1][1]))
                run.append((x, y))
        if run:
            yield _visible(run)

    def _x(self, at: datetime) -> float:
        return WIDE * min(max((at - self.since) / (self.until - self.since), 0.0), 1.0)


def _visible(run: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return run if len(run) > 1 else [run[0], (run[0][0] + 2, run[0][1])]


def rounded_up(amount: float) -> float:
    """The next of 1, 2, 2.5, 5, 8 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(amount))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= amount * 0.999)


def _figure(amount: float) -> str:
    return f"{amount:.0f}" if amount >= 20 or amount == int(amount) else f"{amount:.1f}"
