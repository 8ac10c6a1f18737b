"""What follows from a failure, a stop and a release."""

from datetime import timedelta

import pytest

from agent import wire
from artifacts import jobs
from artifacts.models import StorageRoot
from nodes.audit import events
from tests.artifacts.ordering import (
    GIB,
    OPERATOR,
    SECOND,
    Worker,
    ordered,
    stored,
)
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


def test_a_lasting_failure_ends_the_job_with_its_numbers(worker: Worker, root: StorageRoot) -> None:
    """Field case 61."""
    ordered(root)
    given = worker.take()
    assert worker.fail(given, "insufficient_capacity", LATER, numbers={"missing_bytes": GIB}) == "failed"
    job = stored(given)
    assert (job.failure_code, job.failure_numbers, job.spent) == ("insufficient_capacity", {"missing_bytes": GIB}, 0)
    assert job.finished_at == LATER
    event = events().get(type="job.failed")
    assert (event.details["failure_code"], event.details["failure_numbers"]) == (
        "insufficient_capacity",
        {"missing_bytes": GIB},
    )


def test_a_passing_failure_puts_it_back_with_a_pause_that_doubles(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    at, pauses = START, []
    for _ in range(4):
        given = worker.take(at)
        assert worker.fail(given, "stalled", at) == "queued"
        at = stored(given).not_before or at
        pauses.append((at - START).total_seconds())
    assert pauses == [30, 90, 210, 450]
    last = worker.take(at)
    assert (last.attempt, worker.fail(last, "stalled", at)) == (5, "failed")
    assert (stored(last).spent, told("job.put_back", "job.failed")[-2:]) == (5, ["job.put_back", "job.failed"])


def test_a_limited_rate_waits_as_told_and_spends_nothing(worker: Worker, root: StorageRoot) -> None:
    """Field case 65."""
    ordered(root)
    given = worker.take()
    assert worker.fail(given, "rate_limited", retry_after_seconds=3600) == "queued"
    job = stored(given)
    assert (job.not_before, job.spent) == (START + timedelta(hours=1), 0)


@pytest.mark.parametrize("seconds", [10**9, 0.001], ids=["for ever", "at once"])
def test_a_limited_rate_waits_within_bounds(worker: Worker, root: StorageRoot, seconds: float) -> None:
    ordered(root)
    given = worker.take()
    worker.fail(given, "rate_limited", retry_after_seconds=seconds)
    waits = (stored(given).not_before or START) - START
    assert waits == (timedelta(hours=24) if seconds > 1 else timedelta(seconds=30))


def test_an_unproven_root_ends_the_job_and_marks_nothing_else(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    assert worker.fail(worker.take(), "root_unverified") == "failed"
    root.refresh_from_db()
    assert root.state == "verified"


def test_a_failure_may_bring_the_figures_of_a_preflight(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    failure = wire.Failure(code="insufficient_capacity", detail="full")
    worker.finish(given, outcome="failed", failure=failure, preflight=wire.Preflight(files=1, bytes=5))
    assert (stored(given).preflight or {})["bytes"] == 5


def test_a_release_puts_the_job_back_at_once_and_spends_nothing(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    assert worker.finish(given, outcome="released") == "queued"
    assert (stored(given).not_before, stored(given).spent) == (None, 0)
    assert worker.take().attempt == 2


@pytest.mark.parametrize("outcome", ["released", "cancelled"])
def test_a_job_that_shall_stop_is_cancelled_however_its_agent_stops(
    worker: Worker, root: StorageRoot, outcome: str
) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.finish(given, outcome=outcome) == "cancelled"


def test_an_agent_that_stops_a_job_that_nobody_cancelled_lets_it_go(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    assert worker.finish(worker.take(), outcome="cancelled") == "queued"


@pytest.mark.parametrize(
    ("code", "state"), [("stalled", "cancelled"), ("not_found", "failed")], ids=["passing", "lasting"]
)
def test_a_job_that_shall_stop_and_fails_is_not_tried_again(
    worker: Worker, root: StorageRoot, code: wire.FailureCode, state: str
) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.fail(given, code) == state
    assert stored(given).failure_code == code


def test_a_job_that_was_done_before_it_was_told_to_stop_succeeded(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.publish(given) == "succeeded"
