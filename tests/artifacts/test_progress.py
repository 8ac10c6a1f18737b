"""Hearing how far a job is: the lease is kept, the commit is pinned once, and a flood of words costs few writes."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import jobs, leases, progress
from artifacts.models import Job
from nodes.audit import events
from nodes.callers import Refused
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, Worker, a_server
from tests.nodes.hearing import START, speaker, told

pytestmark = pytest.mark.django_db
OTHER = "beef" + "0" * 36
HALF: dict[str, Any] = {"bytes_total": 2 * GIB, "bytes_done": GIB}


@pytest.fixture
def worker(job: Job) -> Worker:
    """The agent of its node."""
    return Worker(job.node)


@pytest.fixture
def given(worker: Worker) -> wire.Job:
    """The job as the agent holds it since START."""
    return worker.take()


def stored(job: Job) -> Job:
    """The job as it stands."""
    return Job.objects.get(pk=job.pk)


def refused(act: Any, code: Code = Code.LEASE_LOST) -> Refused:
    """The refusal that the act meets."""
    with pytest.raises(Refused) as caught:
        act()
    assert caught.value.code is code
    return caught.value


def test_what_the_agent_says_is_kept(worker: Worker, given: wire.Job, job: Job) -> None:
    at = START + 10 * SECOND
    said = {"files_total": 3, "files_done": 1, "bytes_per_second": 1e9, "eta_seconds": 12.5, "bytes_fetched": GIB}
    worker.tell(given, at, phase="fetch", commit=COMMIT, **HALF, **said)
    found = stored(job)
    for name, value in (HALF | said | {"phase": "fetch", "commit": COMMIT}).items():
        assert getattr(found, name) == value
    assert (found.progress_at, found.course) == (at, [[at.timestamp(), GIB, 1e9]])


def test_a_word_keeps_the_lease(worker: Worker, given: wire.Job, job: Job, settings: Settings) -> None:
    at = START + settings.JOB_LEASE - SECOND
    reply = worker.tell(given, at)
    assert reply == wire.ProgressReply(lease_seconds=settings.JOB_LEASE.total_seconds(), cancel=False)
    assert stored(job).lease_expires_at == at + settings.JOB_LEASE


def test_a_word_after_the_leases_formal_end_still_keeps_it(
    worker: Worker, given: wire.Job, job: Job, settings: Settings
) -> None:
    """Nobody has taken the job meanwhile, so it is still this agent's."""
    at = START + settings.JOB_LEASE + 60 * SECOND
    worker.tell(given, at)
    assert stored(job).lease_expires_at == at + settings.JOB_LEASE


def test_another_lease_does_not_count(worker: Worker, given: wire.Job) -> None:
    refused(lambda: worker.tell(given, lease_id=uuid4()))


def test_another_nodes_word_does_not_count(given: wire.Job) -> None:
    refused(lambda: Worker(a_server("server02")).tell(given))


def test_a_job_that_is_not_known_here_is_a_lost_lease(worker: Worker, given: wire.Job) -> None:
    Job.objects.all().delete()
    refused(lambda: worker.tell(given))


def test_a_job_that_has_ended_hears_no_more(worker: Worker, given: wire.Job) -> None:
    worker.publish(given)
    refused(lambda: worker.tell(given))


def test_the_commit_is_pinned_once(worker: Worker, given: wire.Job, job: Job) -> None:
    """Field case 67."""
    for second in range(3):
        worker.tell(given, START + second * 10 * SECOND, commit=COMMIT)
    assert stored(job).commit == COMMIT
    assert told("job.pinned") == ["job.pinned"]
    assert events().get(type="job.pinned").details["commit"] == COMMIT


def test_a_pinned_commit_never_changes(worker: Worker, given: wire.Job, job: Job) -> None:
    """Field case 67."""
    worker.tell(given, commit=COMMIT)
    refusal = refused(lambda: worker.tell(given, START + 9 * SECOND, commit=OTHER), Code.INVALID)
    assert [error.field for error in refusal.errors] == ["commit"]
    assert stored(job).commit == COMMIT


def test_the_commit_stays_through_attempts(worker: Worker, given: wire.Job, job: Job) -> None:
    worker.tell(given, commit=COMMIT)
    again = worker.restart()
    order = again.take().order
    assert isinstance(order, wire.AcquireOrder)
    assert order.commit == COMMIT


def test_a_commit_with_a_line_break_is_none(worker: Worker, given: wire.Job) -> None:
    refused(lambda: worker.tell(given, commit=COMMIT + "\n"), Code.INVALID)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"bytes_total": 10, "bytes_done": 11}, "bytes_done"),
        ({"files_total": 1, "files_done": 2}, "files_done"),
        ({"bytes_total": 2**50 + 1}, "bytes_total"),
        ({"bytes_fetched": 2**61}, "bytes_fetched"),
    ],
    ids=["bytes", "files", "too large", "too much"],
)
def test_figures_that_cannot_be_are_refused(worker: Worker, given: wire.Job, said: dict[str, Any], field: str) -> None:
    refusal = refused(lambda: worker.tell(given, **said), Code.INVALID)
    assert [error.field for error in refusal.errors] == [field]


def test_what_was_fetched_adds_up_over_attempts(worker: Worker, given: wire.Job, job: Job) -> None:
    worker.tell(given, **HALF, bytes_fetched=GIB)
    later = worker.restart()
    again = later.take(START + 10 * SECOND)
    later.tell(again, START + 20 * SECOND, **HALF, bytes_fetched=5)
    later.tell(again, START + 30 * SECOND, **HALF, bytes_fetched=7)
    assert stored(job).bytes_fetched == GIB + 7


def test_a_job_that_shall_stop_hears_it_with_every_word(worker: Worker, given: wire.Job, job: Job) -> None:
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert [worker.tell(given, START + seconds * SECOND).cancel for seconds in (0, 1, 60)] == [True, True, True]


def writes(worker: Worker, given: wire.Job, words: list[dict[str, Any]], apart: timedelta) -> int:
    """How many statements write, when the agent says all this."""
    with CaptureQueriesContext(connection) as asked:
        for number, said in enumerate(words):
            worker.tell(given, START + number * apart, **said)
    return len([query for query in asked if query["sql"].startswith("UPDATE")])


def test_a_flood_of_words_writes_once_in_two_seconds(worker: Worker, given: wire.Job, job: Job) -> None:
    """Field case 74."""
    flood = [{"bytes_total": GIB, "bytes_done": number} for number in range(100)]
    assert writes(worker, given, flood, timedelta(milliseconds=100)) <= 6


def test_a_flood_of_phases_writes_no_more(worker: Worker, given: wire.Job, job: Job) -> None:
    flood: list[dict[str, Any]] = [{"phase": "plan"}, {"phase": "fetch"}] * 50
    assert writes(worker, given, flood, timedelta(milliseconds=1)) <= 2


def test_each_next_phase_is_seen_at_once(worker: Worker, given: wire.Job, job: Job) -> None:
    for phase in ("plan", "guard", "fetch", "verify", "publish"):
        worker.tell(given, phase=phase)
        assert stored(job).phase == phase


def test_a_word_that_is_not_stored_tells_what_is_left_of_the_lease(
    worker: Worker, given: wire.Job, job: Job, settings: Settings
) -> None:
    worker.tell(given)
    ends = stored(job).lease_expires_at
    reply = worker.tell(given, START + SECOND)
    assert reply.lease_seconds == settings.JOB_LEASE.total_seconds() - 1
    assert stored(job).lease_expires_at == ends


def test_a_word_costs_two_statements(worker: Worker, given: wire.Job) -> None:
    worker.tell(given, commit=COMMIT)
    message = wire.Progress(lease_id=given.lease_id, phase="fetch", commit=COMMIT, **HALF)
    with CaptureQueriesContext(connection) as asked:
        progress.tell(given.id, message, by=speaker(worker.node), now=START + 60 * SECOND)
    assert [query["sql"].split()[0] for query in asked][1:] == ["SELECT", "UPDATE"]  # the first finds the caller


def test_a_long_course_stays_short(worker: Worker, given: wire.Job, job: Job) -> None:
    for minute in range(150):
        worker.tell(given, START + minute * 60 * SECOND, bytes_total=GIB, bytes_done=minute)
    course = stored(job).course
    assert len(course) <= leases.COURSE_POINTS
    assert (course[0][1], course[-1][1]) == (0, 149)


def test_a_word_leaves_no_trace_in_the_history(worker: Worker, given: wire.Job) -> None:
    before = told()
    worker.tell(given, **HALF)
    assert told() == before
