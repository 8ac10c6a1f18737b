"""What failed and cancelled jobs left is noted as the agent tells it, and deleted at once at an operator's word."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from artifacts import half_done, jobs
from artifacts.models import HalfDone, Job, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.models import Node
from tests.artifacts.leaving import LATER, WEIGHT, ask, asked, look, stopped
from tests.artifacts.ordering import OPERATOR, SECOND, Worker, a_root, a_server, ordered, proof
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def left(root: StorageRoot, worker: Worker) -> Job:
    """A job that failed, and whose files lie there by its agent's word."""
    job = stopped(root, worker)
    look(worker, root, job)
    return job


def test_what_a_failed_job_left_is_noted_with_its_weight(left: Job) -> None:
    known = asked(left)
    assert (known.bytes, known.asked_at, known.gone_at) == (WEIGHT, None, None)
    assert half_done.kept_until(left, known) == START + timedelta(days=1)


def test_what_is_not_weighed_is_told_as_not_measured(left: Job, root: StorageRoot, worker: Worker) -> None:
    look(worker, root, left, weights={})
    assert asked(left).bytes is None


def test_what_a_job_that_waits_or_runs_holds_is_not_noted(root: StorageRoot, worker: Worker) -> None:
    job = ordered(root)
    look(worker, root, job)
    worker.take()
    look(worker, root, job)
    assert not HalfDone.objects.exists()


def test_what_is_gone_unasked_is_not_noted_any_more(left: Job, root: StorageRoot, worker: Worker) -> None:
    look(worker, root)
    assert not HalfDone.objects.exists()
    assert told("job.forgotten") == []


def test_the_room_is_given_back_at_once_where_an_operator_asks(left: Job, root: StorageRoot, worker: Worker) -> None:
    assert look(worker, root, left).forget == []
    ask(left)
    assert Node.objects.get(pk=root.node_id).work_waits, "its next beat calls for a claim"
    assert look(worker, root, left).forget == [left.pk]


def test_it_counts_as_gone_only_once_the_agents_word_lacks_it(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    look(worker, root, left, now=LATER + SECOND)
    assert asked(left).gone_at is None
    look(worker, root, now=LATER + 2 * SECOND)
    assert asked(left).gone_at == LATER + 2 * SECOND
    look(worker, root, now=LATER + 3 * SECOND)
    assert told("job.forget_requested", "job.forgotten") == ["job.forget_requested", "job.forgotten"]


@pytest.mark.parametrize(
    "found",
    [
        {"fault": "overdue"},
        {"fault": "marker_missing"},
        {"device_id": "9:9", "fsid": "fe99", "partial_bytes": wire.Reading(value=0)},
        {"partial_bytes": wire.Reading(reason="error")},
        {"partial_bytes": wire.Reading(reason="unsupported")},
    ],
    ids=[
        "a disk that does not answer",
        "no disk",
        "another disk",
        "a list that failed",
        "an agent that weighs nothing",
    ],
)
def test_a_word_that_could_not_know_shows_nothing_as_gone(
    left: Job, root: StorageRoot, worker: Worker, found: dict[str, Any]
) -> None:
    ask(left)
    look(worker, root, proofs=[proof(root, **found)])
    assert asked(left).gone_at is None


def test_a_word_without_a_look_shows_nothing_as_gone(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    look(worker, root, proofs=[])
    assert asked(left).gone_at is None


def test_a_list_that_may_have_been_cut_off_shows_nothing_as_gone(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    others = [uuid.uuid4() for _ in range(wire.MAX_PARTIALS)]
    look(worker, root, partials=others)
    assert asked(left).gone_at is None
    look(worker, root, partials=others[1:])
    assert asked(left).gone_at == LATER


def statements(worker: Worker, root: StorageRoot, *lying: Job) -> int:
    """How many a claim costs."""
    with CaptureQueriesContext(connection) as asked:
        look(worker, root, *lying)
    return len(asked)


def test_a_claim_costs_the_same_whatever_was_there_once(root: StorageRoot, worker: Worker) -> None:
    look(worker, root)
    before = statements(worker, root)
    for number in range(3):
        job = stopped(root, worker, f"org/{number}")
        look(worker, root, job)
        ask(job)
        look(worker, root)
    assert statements(worker, root) == before


def test_a_claim_costs_the_same_for_one_that_lies_there_and_for_three(root: StorageRoot, worker: Worker) -> None:
    lying = [stopped(root, worker, f"org/{number}") for number in range(3)]
    look(worker, root, *lying)
    look(worker, root, lying[0])
    one = statements(worker, root, lying[0])
    look(worker, root, *lying)
    assert statements(worker, root, *lying) == one


def test_the_history_tells_who_asked_and_how_much_it_was(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    look(worker, root)
    wanted, gone = events().filter(type__startswith="job.forg").order_by("position")
    assert (wanted.about_id, wanted.actor_label) == (str(left.pk), "admin token")
    assert (wanted.details["half_done_bytes"], wanted.details["reason"]) == (WEIGHT, "the disk is full")
    assert (gone.actor_kind, gone.details["freed_bytes"], gone.details["asked_by"]) == ("node", WEIGHT, "admin token")


def test_asked_twice_nothing_more_happens(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    ask(left, LATER + SECOND)
    assert asked(left).asked_at == LATER
    look(worker, root)
    ask(left, LATER + 2 * SECOND)
    assert asked(left).gone_at == LATER
    assert told("job.forget_requested") == ["job.forget_requested"]


def test_word_is_asked_for_soon_and_then_less_and_less_often(left: Job, root: StorageRoot, worker: Worker) -> None:
    assert look(worker, root, left).look_again_seconds == 300
    ask(left)
    waits = [look(worker, root, left, now=LATER + n * SECOND).look_again_seconds for n in (0, 15, 60, 3600)]
    assert waits == [5, 7.5, 30, 300]
    assert look(worker, root, now=LATER + 3601 * SECOND).look_again_seconds == 300


def test_a_cancelled_jobs_files_are_forgotten_as_well(root: StorageRoot, worker: Worker) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, by=OPERATOR, now=START)
    worker.finish(given, outcome="cancelled")
    look(worker, root, job)
    ask(job)
    assert look(worker, root, job).forget == [job.pk]


def test_what_is_to_be_forgotten_is_used_by_no_order_that_comes_later(
    left: Job, root: StorageRoot, worker: Worker
) -> None:
    ask(left)
    ordered(root, now=LATER)
    reply = look(worker, root, left, types=[wire.ACQUIRE])
    assert reply.forget == [left.pk]
    assert reply.job is not None
    assert isinstance(reply.job.order, wire.AcquireOrder)
    assert reply.job.order.expendable == []


def test_a_retry_before_they_are_gone_takes_the_request_back(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    jobs.retry(left, by=OPERATOR, now=LATER)
    reply = look(worker, root, left, types=[wire.ACQUIRE])
    assert (reply.forget, reply.job is not None) == ([], True)
    assert asked(left).asked_at is None


def test_a_retry_after_that_begins_without_a_past(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    look(worker, root)
    jobs.retry(left, by=OPERATOR, now=LATER)
    assert not HalfDone.objects.exists()


def test_what_comes_back_after_it_was_gone_is_forgotten_again(left: Job, root: StorageRoot, worker: Worker) -> None:
    ask(left)
    look(worker, root)
    assert look(worker, root, left).forget == [left.pk]
    assert asked(left).gone_at is None


def test_on_a_node_that_is_disabled_it_waits(left: Job, root: StorageRoot, worker: Worker) -> None:
    control.disable(root.node, reason="repair", by=OPERATOR, now=LATER)
    ask(left)
    control.enable(root.node, reason="", by=OPERATOR, now=LATER)
    assert look(worker, root, left).forget == [left.pk]


def test_another_nodes_word_says_nothing_of_them(left: Job, root: StorageRoot) -> None:
    ask(left)
    other = a_root(a_server("server02"))
    look(Worker(other.node), other)
    assert asked(left).gone_at is None


def test_after_the_grace_they_are_forgotten_unasked(
    left: Job, root: StorageRoot, worker: Worker, settings: Settings
) -> None:
    late = START + settings.PARTIAL_GRACE
    assert look(worker, root, left, now=late).forget == [left.pk]
    look(worker, root, now=late)
    assert not HalfDone.objects.exists()
