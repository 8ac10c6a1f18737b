"""Cancelling a job and letting it try again."""

from typing import Any

import pytest

from agent.protocol import Code
from artifacts import jobs, orders
from artifacts.models import Artifact, Job, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Caller, Refused
from nodes.models import Node
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    OPERATOR,
    SECOND,
    Worker,
    an_artifact,
    ordered,
    proof,
)
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND
VERBS = pytest.mark.parametrize("verb", [jobs.cancel, jobs.retry], ids=["cancel", "retry"])


@pytest.fixture
def job(root: StorageRoot) -> Job:
    """A job that waits."""
    return ordered(root)


def refused(act: Any, code: Code = Code.STATE_CONFLICT) -> Refused:
    """The refusal that the act meets."""
    with pytest.raises(Refused) as caught:
        act()
    assert caught.value.code is code
    return caught.value


def test_a_job_that_waits_is_cancelled_at_once(job: Job) -> None:
    found = jobs.cancel(job, reason="wrong model", by=OPERATOR, now=LATER)
    assert (found.state, found.finished_at, found.cancelled_by) == ("cancelled", LATER, "admin token")
    assert events().get(type="job.cancelled").details["reason"] == "wrong model"
    assert Worker(job.node).claim(LATER).job is None


def test_a_job_that_runs_is_told_to_stop_and_ends_by_its_agents_word(job: Job) -> None:
    worker = Worker(job.node)
    given = worker.take()
    assert worker.tell(given).cancel is False
    found = jobs.cancel(job, reason="wrong model", by=OPERATOR, now=LATER)
    assert (found.state, found.cancel_requested_at) == ("running", LATER)
    assert worker.tell(given, LATER).cancel is True
    assert worker.finish(given, LATER, outcome="cancelled") == "cancelled"
    assert told("job.cancel_requested", "job.cancelled") == ["job.cancel_requested", "job.cancelled"]
    job.refresh_from_db()
    assert (job.cancelled_by, job.lease_id) == ("admin token", None)


def test_asked_to_stop_twice_it_is_told_once(job: Job) -> None:
    Worker(job.node).take()
    jobs.cancel(job, reason="first", by=OPERATOR, now=LATER)
    assert jobs.cancel(job, reason="again", by=OPERATOR, now=LATER + SECOND).cancel_requested_at == LATER
    assert told("job.cancel_requested") == ["job.cancel_requested"]


def test_a_job_that_has_ended_is_not_cancelled(job: Job) -> None:
    jobs.cancel(job, reason="", by=OPERATOR, now=LATER)
    assert "was cancelled" in refused(lambda: jobs.cancel(job, reason="", by=OPERATOR, now=LATER)).detail


def test_a_job_of_a_disabled_node_can_be_cancelled(job: Job) -> None:
    control.disable(job.node, reason="maintenance", by=OPERATOR, now=START)
    assert jobs.cancel(job, reason="", by=OPERATOR, now=LATER).state == "cancelled"


def failed(job: Job, **said: Any) -> Job:
    """The job, once it has failed for good in the middle."""
    worker = Worker(job.node)
    given = worker.take()
    worker.tell(given, commit=COMMIT, bytes_total=2 * GIB, bytes_done=GIB, bytes_fetched=GIB)
    worker.fail(given, "insufficient_capacity", numbers={"missing_bytes": GIB})
    job.refresh_from_db()
    return job


def test_a_job_that_failed_tries_again_where_it_stopped(job: Job) -> None:
    assert failed(job).state == "failed"
    again = jobs.retry(job, reason="room was made", by=OPERATOR, now=LATER)
    assert (again.state, again.spent, again.finished_at, again.failure_code) == ("queued", 0, None, "")
    assert (again.commit, again.bytes_done, again.bytes_fetched) == (COMMIT, GIB, GIB)
    event = events().get(type="job.retried")
    assert (event.details["failure_code"], event.details["reason"]) == ("insufficient_capacity", "room was made")
    assert Node.objects.get().work_waits
    assert Worker(job.node).take(LATER).attempt == 2


def test_a_job_that_was_cancelled_tries_again(job: Job) -> None:
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    again = jobs.retry(job, reason="", by=OPERATOR, now=LATER)
    assert (again.state, again.cancel_requested_at, again.cancelled_by) == ("queued", None, "")


def test_a_job_that_waits_or_succeeded_needs_no_retry(job: Job) -> None:
    assert "waits" in refused(lambda: jobs.retry(job, reason="", by=OPERATOR, now=LATER)).detail
    worker = Worker(job.node)
    worker.publish(worker.take())
    assert "succeeded" in refused(lambda: jobs.retry(job, reason="", by=OPERATOR, now=LATER)).detail


def test_a_job_does_not_try_again_beside_a_newer_order_of_the_same(root: StorageRoot, job: Job) -> None:
    failed(job)
    newer = ordered(root, now=LATER)
    assert str(newer.pk) in refused(lambda: jobs.retry(job, reason="", by=OPERATOR, now=LATER)).detail


def test_a_job_tries_again_only_where_its_root_is_proven(root: StorageRoot, job: Job) -> None:
    failed(job)
    Worker(job.node).claim(proofs=[proof(root, fault="marker_missing")])
    refused(lambda: jobs.retry(job, reason="", by=OPERATOR, now=LATER), Code.ROOT_UNVERIFIED)


def test_a_job_tries_again_only_where_its_agent_still_does_such_jobs(job: Job) -> None:
    failed(job)
    Node.objects.update(facts={"agent": {"job_types": []}})
    refused(lambda: jobs.retry(job, reason="", by=OPERATOR, now=LATER), Code.JOB_TYPE_UNSUPPORTED)


def test_what_was_removed_meanwhile_is_not_tried_again(root: StorageRoot) -> None:
    verification, _ = orders.verify(an_artifact(root), by=OPERATOR, now=START)
    jobs.cancel(verification, reason="", by=OPERATOR, now=START)
    Artifact.objects.update(state="removed")
    refused(lambda: jobs.retry(verification, reason="", by=OPERATOR, now=LATER))


@VERBS
def test_an_auditor_only_looks_on(job: Job, auditor: Caller, verb: Any) -> None:
    refused(lambda: verb(job, reason="", by=auditor, now=LATER), Code.FORBIDDEN)


@VERBS
def test_a_reason_that_is_too_long_is_refused(job: Job, verb: Any) -> None:
    refused(lambda: verb(job, reason="x" * 256, by=OPERATOR, now=LATER), Code.INVALID)
