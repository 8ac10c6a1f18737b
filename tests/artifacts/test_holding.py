"""What a node may add to the history by claims and results is bounded; what operators ordered never is."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import claims
from artifacts.models import Job, StorageRoot
from nodes import allowance
from nodes.audit import events
from nodes.callers import Refused
from nodes.models import Node
from tests.artifacts.ordering import COMMIT, SECOND, Worker, ordered, proof
from tests.nodes.hearing import START, speaker, told

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
LIMIT = 8


@pytest.fixture(autouse=True)
def _little(root: StorageRoot, settings: Settings) -> None:
    """A node may make eight events an hour; the root's first proof is paid off."""
    settings.NODE_HISTORY_PER_HOUR = LIMIT
    Node.objects.update(history_owed_until=None)


def owed() -> timedelta:
    """How far the node is from its whole allowance, in hours' shares of time."""
    until = Node.objects.get().history_owed_until
    return until - START if until is not None else timedelta()


def flip(worker: Worker, root: StorageRoot, times: int, *, fault: bool = True) -> tuple[int, Refused | None]:
    """Prove the root and take it back, each second once; how often that was heard, and the last refusal."""
    heard, refusal = 0, None
    for number in range(times):
        found = {"fault": "marker_missing"} if number % 2 == 0 and fault else {}
        try:
            worker.claim(START + number * SECOND, types=[], proofs=[proof(root, **found)])
            heard += 1
        except Refused as no:
            refusal = no
    return heard, refusal


def test_proofs_that_flip_are_heard_so_often_and_then_refused_until_it_is_time(
    root: StorageRoot, worker: Worker
) -> None:
    before = events().count()
    heard, refusal = flip(worker, root, 100)
    assert refusal is not None
    assert (heard, refusal.code) == (LIMIT, Code.THROTTLED)
    assert events().count() == before + LIMIT + 1
    assert told("node.held_back") == ["node.held_back"]


def test_proofs_that_say_the_same_are_heard_as_often_as_they_are_told(root: StorageRoot, worker: Worker) -> None:
    assert flip(worker, root, 100, fault=False) == (100, None)


def test_what_was_refused_is_taken_when_it_is_told_again(root: StorageRoot, worker: Worker) -> None:
    refusal = flip(worker, root, 100)[1]
    assert refusal is not None
    assert refusal.retry_after is not None
    again = START + 99 * SECOND + refusal.retry_after
    root.refresh_from_db()
    assert root.state == "verified"
    worker.claim(again, types=[], proofs=[proof(root, fault="marker_missing")])
    root.refresh_from_db()
    assert (root.state, root.looked_at) == ("unverified", again)


def test_a_claim_of_a_node_that_is_held_back_costs_one_statement(root: StorageRoot, worker: Worker) -> None:
    flip(worker, root, 100)
    message = wire.Claim(boot_id=worker.boot_id, types=[], proofs=[proof(root)])
    by = speaker(root.node)
    with CaptureQueriesContext(connection) as asked, pytest.raises(Refused):
        claims.claim(message, by=by, now=START + 100 * SECOND)
    assert len([one for one in asked if "SAVEPOINT" not in one["sql"]]) == 1


def test_a_job_that_runs_meanwhile_keeps_its_lease_and_its_result_counts(root: StorageRoot, worker: Worker) -> None:
    ordered(root)
    given = worker.take()
    allowance.spend(root.node_id, 2 * LIMIT, now=START)
    assert worker.tell(given, START + SECOND, commit=COMMIT).lease_seconds == 300
    assert worker.publish(given, START + 2 * SECOND) == "succeeded"


def test_what_operators_ordered_is_not_counted_however_much_it_is(root: StorageRoot, worker: Worker) -> None:
    for number in range(3 * LIMIT):
        ordered(root, f"org/model-{number}")
        worker.publish(worker.take())
    assert len(told("job.succeeded")) == 3 * LIMIT
    assert owed() == timedelta()


def test_failed_attempts_are_not_counted_for_they_are_bounded(root: StorageRoot, worker: Worker) -> None:
    ordered(root)
    at = START
    for _ in range(5):
        worker.fail(worker.take(at), "stalled", at)
        at += HOUR
    assert told("job.failed") == ["job.failed"]
    assert owed() == timedelta()


def test_a_job_that_is_given_back_is_counted(root: StorageRoot, worker: Worker) -> None:
    ordered(root)
    worker.finish(worker.take(), outcome="released")
    assert owed() == HOUR / LIMIT


def test_waits_that_cost_no_attempt_are_counted(root: StorageRoot, worker: Worker) -> None:
    ordered(root)
    worker.fail(worker.take(), "rate_limited")
    assert owed() == HOUR / LIMIT


def test_a_job_that_one_process_after_the_other_takes_over_is_counted(root: StorageRoot, worker: Worker) -> None:
    ordered(root)
    worker.take()
    worker.restart().take()
    assert owed() == HOUR / LIMIT


def test_claiming_and_giving_back_for_ever_fills_no_history(root: StorageRoot, worker: Worker) -> None:
    """Field case 42."""
    for number in range(200):
        ordered(root, f"org/model-{number}")
    before = events().count()
    refused = 0
    for number in range(200):
        at = START + number * SECOND
        try:
            worker.finish(worker.take(at), at, outcome="released")
        except Refused:
            refused += 1
    assert refused == 200 - LIMIT
    assert events().count() == before + 2 * LIMIT + 1
    assert Job.objects.filter(state="queued").count() == 200
