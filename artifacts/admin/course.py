"""A job's course as pictures: bytes done and rate over time, broken at silence and where an attempt began anew."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from artifacts.models import Job
from nodes.admin.pictures import Line, Picture, Point

UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
SILENCE = timedelta(minutes=2)


def pictures(job: Job, now: datetime) -> list[Picture]:
    """Two pictures, or none before there are two points to join."""
    told = [(datetime.fromtimestamp(at, UTC), done, rate) for at, done, rate in job.course]
    if len(told) < 2:
        return []
    since, until = told[0][0], told[-1][0]
    if job.state == Job.State.RUNNING:
        until = max(until, now)
    until = max(until, since + timedelta(seconds=1))
    done, done_unit = scaled([(at, done) for at, done, _ in told], job.bytes_total)
    rate, rate_unit = scaled([(at, rate) for at, _, rate in told])
    anew = {after[0] for before, after in pairwise(told) if after[1] < before[1]}
    whole = job.bytes_total / 1024 ** UNITS.index(done_unit) if job.bytes_total else None
    return [
        Picture("Bytes done", done_unit, since, until, [Line("Done", broken(done, anew))], top=whole, filled=True),
        Picture("Rate", f"{rate_unit}/s", since, until, [Line("Rate", broken(rate, anew))], filled=True),
    ]


def scaled(points: Sequence[tuple[datetime, float]], most: float = 0) -> tuple[list[tuple[datetime, float]], str]:
    """The amounts in the unit that suits the largest of them."""
    highest = max([most, *(value for _, value in points)])
    power = 0
    while highest >= 1024 and power < len(UNITS) - 1:
        highest, power = highest / 1024, power + 1
    return [(at, value / 1024**power) for at, value in points], UNITS[power]


def broken(points: Sequence[tuple[datetime, float]], anew: Collection[datetime] = ()) -> list[Point]:
    """The points with a hole wherever the agent was silent for long: between attempts nothing was measured.

    Args:
        points: when and what.
        anew: the points at which an attempt had less than the one before.
    """
    gaps = [after[0] - before[0] for before, after in pairwise(points)]
    usual = sorted(gaps)[len(gaps) // 2] if gaps else timedelta()
    drawn: list[Point] = [points[0]]
    for gap, (before, after) in zip(gaps, pairwise(points), strict=True):
        if gap > max(SILENCE, 4 * usual) or after[0] in anew:
            drawn.append((before[0] + gap / 2, None))
        drawn.append(after)
    return drawn
