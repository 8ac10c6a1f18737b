"""What an agent hears beside its job: the room that others leave, that work waits, and what to forget."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from agent import wire
from artifacts import jobs
from artifacts.models import Job, StorageRoot
from nodes.models import Heartbeat, Node
from tests.artifacts.ordering import (
    GIB,
    OPERATOR,
    SECOND,
    Worker,
    a_root,
    a_server,
    an_artifact,
    ordered,
    proof,
)
from tests.nodes.hearing import START, Agent

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


def test_what_other_jobs_will_still_write_on_this_disk_is_told(worker: Worker, root: StorageRoot) -> None:
    """Field case 61."""
    beside = a_root(root.node, "/data/artifacts/lab")
    ordered(root)
    given = worker.take()
    worker.tell(given, bytes_total=30 * GIB, bytes_done=10 * GIB)
    worker.fail(given, "stalled")
    ordered(beside, "org/other")
    order = worker.take().order
    assert isinstance(order, wire.AcquireOrder)
    assert (order.root_id, order.reserved_bytes, order.room_bytes) == (beside.pk, 20 * GIB, None)


def test_what_a_job_itself_will_write_is_not_reserved_against_it(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    worker.tell(given, bytes_total=30 * GIB, bytes_done=10 * GIB)
    order = worker.take().order
    assert isinstance(order, wire.AcquireOrder)
    assert order.reserved_bytes == 0


def test_what_a_ceiling_leaves_is_told() -> None:
    root = a_root(a_server(), ceiling_bytes=25 * GIB, reserve_bytes=GIB)
    an_artifact(root)
    ordered(root, "org/other", now=LATER)
    order = Worker(root.node).take(LATER).order
    assert isinstance(order, wire.AcquireOrder)
    assert (order.room_bytes, order.reserve_bytes) == (15 * GIB, GIB)


def waits(root: StorageRoot) -> bool:
    """Whether the node's next beat says that work waits."""
    return Node.objects.get(pk=root.node_id).work_waits


def test_beats_say_that_work_waits_until_it_is_claimed(worker: Worker, root: StorageRoot) -> None:
    assert not waits(root)
    ordered(root)
    assert waits(root)
    worker.claim(types=[])
    assert waits(root)
    worker.take()
    assert not waits(root)


def test_beats_say_so_again_when_a_job_ends_and_another_is_due(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    ordered(root, "org/other")
    given = worker.take()
    assert not waits(root)
    worker.publish(given)
    assert waits(root)


def test_beats_do_not_call_for_what_cannot_be_given(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    worker.claim(types=[wire.VERIFY])
    assert not waits(root)


def test_a_root_is_asked_for_until_it_was_looked_at(root: StorageRoot, worker: Worker) -> None:
    other = a_root(root.node, "/data/artifacts/lab", proven=False)
    worker.claim()
    assert waits(root)
    worker.claim(proofs=[proof(other, fault="missing")])
    assert not waits(root)


def test_half_done_files_that_nobody_needs_are_forgotten(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    done = an_artifact(root).jobs.get()
    waiting = ordered(root, "org/b", now=LATER + SECOND)
    foreign = ordered(a_root(a_server("server02")))
    unknown = uuid.uuid4()
    told_of = [done.pk, waiting.pk, foreign.pk, unknown, unknown]
    reply = worker.claim(LATER + SECOND, partials=told_of)
    assert reply.forget == [done.pk, foreign.pk, unknown]


@pytest.mark.parametrize(("late", "forgotten"), [(-1, False), (0, True)], ids=["within its grace", "after it"])
def test_those_of_a_failed_job_are_kept_for_a_while(
    worker: Worker, root: StorageRoot, settings: Settings, late: int, forgotten: bool
) -> None:
    job = ordered(root)
    worker.fail(worker.take(), "insufficient_capacity")
    reply = worker.claim(START + settings.PARTIAL_GRACE + late * SECOND, partials=[job.pk])
    assert reply.forget == ([job.pk] if forgotten else [])


def cancelled(root: StorageRoot, worker: Worker, repo_id: str = "org/model") -> Job:
    """A job that was cancelled in the middle, at START."""
    job = ordered(root, repo_id)
    given = worker.take()
    worker.tell(given, bytes_total=30 * GIB, bytes_done=10 * GIB)
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.finish(given, outcome="cancelled") == "cancelled"
    return job


@pytest.mark.parametrize(("late", "forgotten"), [(-1, False), (0, True)], ids=["within its grace", "after it"])
def test_those_of_a_cancelled_job_are_kept_for_a_while(
    worker: Worker, root: StorageRoot, settings: Settings, late: int, forgotten: bool
) -> None:
    job = cancelled(root, worker)
    reply = worker.claim(START + settings.PARTIAL_GRACE + late * SECOND, partials=[job.pk])
    assert reply.forget == ([job.pk] if forgotten else [])


def test_without_a_grace_they_go_at_once(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    settings.PARTIAL_GRACE = timedelta()
    job = cancelled(root, worker)
    assert worker.claim(START, partials=[job.pk]).forget == [job.pk]


def test_a_cancelled_job_that_is_tried_again_is_the_same_job_with_its_files(worker: Worker, root: StorageRoot) -> None:
    job = cancelled(root, worker)
    jobs.retry(job, reason="", by=OPERATOR, now=LATER)
    reply = worker.claim(LATER, partials=[job.pk])
    assert reply.job is not None
    assert (reply.job.id, reply.forget) == (job.pk, [])
    assert isinstance(reply.job.order, wire.AcquireOrder)
    assert reply.job.order.expendable == []


def expendable(worker: Worker, partials: list[uuid.UUID], now: datetime = LATER) -> list[uuid.UUID]:
    """Whose half-done files the job that is given now may use."""
    given = worker.claim(now, partials=partials).job
    assert given is not None
    assert isinstance(given.order, wire.AcquireOrder)
    return given.order.expendable


def test_an_order_hears_which_cancelled_jobs_files_may_make_room(worker: Worker, root: StorageRoot) -> None:
    beside = a_root(root.node, "/data/artifacts/lab")
    first, second = cancelled(root, worker, "org/a"), cancelled(root, worker, "org/b")
    elsewhere, not_there = cancelled(beside, worker), cancelled(root, worker, "org/c")
    Job.objects.filter(pk=first.pk).update(finished_at=START + SECOND)
    failed = ordered(root, "org/d")
    worker.fail(worker.take(), "insufficient_capacity")
    ordered(root, "org/e", now=LATER)
    told = expendable(worker, [failed.pk, first.pk, elsewhere.pk, second.pk])
    assert told == [second.pk, first.pk]
    assert not_there.pk not in told


@pytest.mark.parametrize(
    ("again", "used"),
    [({}, True), ({"revision": "v2"}, False), ({"ignore_patterns": ["*.bin"]}, False)],
    ids=["the same", "another revision", "other files"],
)
def test_an_order_goes_on_with_what_a_failed_one_left_whose_place_it_took(
    worker: Worker, root: StorageRoot, again: dict[str, Any], used: bool
) -> None:
    failed = ordered(root)
    worker.fail(worker.take(), "insufficient_capacity")
    ordered(root, now=LATER, **again)
    assert expendable(worker, [failed.pk]) == ([failed.pk] if used else [])


def test_what_is_to_be_forgotten_may_not_be_used_as_well(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    job = cancelled(root, worker)
    ordered(root, "org/e", now=LATER)
    assert expendable(worker, [job.pk], START + settings.PARTIAL_GRACE) == []


def test_a_beat_of_a_node_that_waits_for_nothing_asks_for_no_claim(root: StorageRoot) -> None:
    agent = Agent(root.node)
    assert agent.beat(START).work is False
    ordered(root)
    assert agent.beat(LATER).work is True
    assert Heartbeat.objects.get().boot_id == agent.boot_id
