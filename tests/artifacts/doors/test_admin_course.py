"""A job's course as its page draws it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from artifacts.admin.course import pictures
from artifacts.models import Job, StorageRoot
from tests.artifacts.showing import GIB, a_job

pytestmark = pytest.mark.django_db


def a_course(root: StorageRoot, now: datetime, *points: tuple[int, int], **fields: Any) -> Job:
    """A job that was so far so many seconds ago."""
    course = [[(now - timedelta(seconds=ago)).timestamp(), done, 2.0 * 2**20] for ago, done in points]
    return a_job(root, now, **{"course": course, "bytes_total": 4 * GIB, "bytes_done": points[-1][1]} | fields)


def test_a_course_is_drawn_in_units_that_suit_it(root: StorageRoot, now: datetime) -> None:
    done, rate = pictures(a_course(root, now, (20, GIB), (10, 2 * GIB), state="running"), now)
    assert (done.unit, done.top, [value for _, value in done.lines[0].points]) == ("GiB", 4.0, [1.0, 2.0])
    assert (rate.unit, [value for _, value in rate.lines[0].points]) == ("MiB/s", [2.0, 2.0])
    assert abs(done.until - now) < timedelta(seconds=1)


def test_a_course_that_ended_is_drawn_to_its_end(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (7200, GIB), (7190, 2 * GIB), state="succeeded")
    assert pictures(job, now)[0].until == datetime.fromtimestamp(job.course[-1][0], UTC)


def test_a_course_is_broken_where_nobody_was_heard(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (1000, GIB), (995, GIB), (990, GIB), (10, 2 * GIB), (5, 2 * GIB), state="running")
    assert [value for _, value in pictures(job, now)[0].lines[0].points] == [1.0, 1.0, 1.0, None, 2.0, 2.0]


def test_a_course_is_broken_where_an_attempt_began_anew(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (30, GIB), (20, 3 * GIB), (10, 0), (5, GIB), state="running")
    done, rate = pictures(job, now)
    assert [value for _, value in done.lines[0].points] == [1.0, 3.0, None, 0.0, 1.0]
    assert [value for _, value in rate.lines[0].points] == [2.0, 2.0, None, 2.0, 2.0]


def test_one_point_is_no_course(root: StorageRoot, now: datetime) -> None:
    assert pictures(a_course(root, now, (5, GIB), state="running"), now) == []
