"""An agent claims again: the same process keeps its job, another one takes it over, and some jobs end by it."""

import uuid

import pytest

from agent import wire
from agent.protocol import Code
from artifacts import jobs, leases
from artifacts.models import Job, StorageRoot
from nodes.callers import Refused
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    OPERATOR,
    SECOND,
    Worker,
    ordered,
    proof,
)
from tests.nodes.hearing import START, Agent, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


def test_an_agent_that_claims_again_holds_the_same_job_under_a_new_lease(worker: Worker, root: StorageRoot) -> None:
    """Field case 75."""
    ordered(root)
    ordered(root, "org/other")
    first = worker.take()
    second = worker.take(LATER)
    assert (second.id, second.attempt, second.lease_id == first.lease_id) == (first.id, 1, False)
    assert told("job.started") == ["job.started"]
    with pytest.raises(Refused) as caught:
        worker.tell(first, LATER)
    assert caught.value.code == Code.LEASE_LOST
    worker.tell(second, LATER)


def test_a_new_process_goes_on_with_the_job_in_another_attempt(worker: Worker, root: StorageRoot) -> None:
    """Field case 75."""
    job = ordered(root)
    first = worker.take()
    worker.tell(first, commit=COMMIT, bytes_total=2 * GIB, bytes_done=GIB, bytes_fetched=GIB)
    again = worker.restart().take(LATER)
    assert (again.id, again.attempt) == (first.id, 2)
    assert isinstance(again.order, wire.AcquireOrder)
    assert again.order.commit == COMMIT
    job.refresh_from_db()
    assert (job.spent, job.fruitless, job.bytes_fetched_before) == (0, 0, GIB)


def test_a_job_that_kills_its_agent_again_and_again_ends(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    worker.take()
    for _ in range(leases.MAX_FRUITLESS - 1):
        worker = worker.restart()
        assert worker.take().id == job.pk
    assert worker.restart().claim().job is None
    job.refresh_from_db()
    assert (job.state, job.failure_code, job.attempt) == ("failed", "lease_lost", leases.MAX_FRUITLESS)
    assert told("job.failed") == ["job.failed"]


def test_restarts_that_get_further_each_time_end_nothing(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    for done in range(leases.MAX_FRUITLESS + 5):
        worker.tell(worker.take(), bytes_total=GIB, bytes_done=done + 1)
        worker = worker.restart()
    job.refresh_from_db()
    assert (job.state, job.fruitless) == ("running", 0)


def test_getting_as_far_as_before_is_no_further(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    for done in (100, 50, 90):
        worker.tell(worker.take(), bytes_total=GIB, bytes_done=done)
        worker = worker.restart()
    worker.take()
    job.refresh_from_db()
    assert job.fruitless == 2


def test_the_next_job_is_given_where_the_one_before_ends_with_the_claim(worker: Worker, root: StorageRoot) -> None:
    first, second = ordered(root), ordered(root, "org/other", now=START + SECOND)
    worker.take(LATER)
    jobs.cancel(first, reason="", by=OPERATOR, now=LATER)
    assert worker.take(LATER).id == second.pk
    first.refresh_from_db()
    assert (first.state, first.cancelled_by) == ("cancelled", "admin token")


def test_a_job_whose_root_lost_its_proof_goes_back_unspent(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    worker.take()
    assert worker.claim(LATER, proofs=[proof(root, fault="marker_missing")]).job is None
    job.refresh_from_db()
    assert (job.state, job.spent, job.lease_id) == ("queued", 0, None)


def test_a_job_that_an_older_agent_no_longer_does_goes_back_unspent(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    worker.take()
    assert worker.claim(LATER, types=[wire.VERIFY]).job is None
    job.refresh_from_db()
    assert (job.state, job.spent) == ("queued", 0)


def test_a_process_that_was_not_heard_yet_beats_first(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    worker.boot_id = uuid.uuid4()
    with pytest.raises(Refused) as caught:
        worker.claim()
    assert caught.value.code == Code.IDENTITY_CONFLICT
    assert "heartbeat first" in caught.value.detail
    assert Job.objects.get().state == "queued"


def test_a_copy_of_the_identity_gets_no_job(root: StorageRoot) -> None:
    copy, present = Agent(root.node), Agent(root.node)
    copy.beat(START)
    present.beat(LATER)
    worker = Worker(root.node)
    ordered(root)
    worker.boot_id = copy.boot_id
    with pytest.raises(Refused) as caught:
        worker.claim(LATER)
    assert caught.value.code == Code.IDENTITY_CONFLICT
    assert "Another process speaks" in caught.value.detail
