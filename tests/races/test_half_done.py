"""Half-done files under real concurrency: who wants their room meets who wants their bytes."""

from functools import partial

import pytest

from agent import wire
from agent.protocol import Code
from artifacts import half_done, jobs, orders
from artifacts.models import HalfDone, Job, StorageRoot
from nodes.audit import broken, events, verify
from tests.artifacts.leaving import LATER, look, stopped
from tests.artifacts.ordering import OPERATOR, SECOND, Worker, a_root, a_server
from tests.races.racing import race

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5
AFTER = LATER + SECOND


def left_behind() -> list[tuple[StorageRoot, Worker, Job]]:
    """A failed job whose files lie on each of a few servers: a round each."""
    found = []
    for number in range(ROUNDS):
        root = a_root(a_server(f"server{number}"))
        worker = Worker(root.node)
        job = stopped(root, worker)
        look(worker, root, job)
        found.append((root, worker, job))
    return found


def told_of(job: Job, type: str) -> int:
    """How often the history tells this of the job."""
    return events().filter(about_id=str(job.pk), type=type).count()


def test_of_two_who_want_the_room_one_is_told() -> None:
    for _, _, job in left_behind():
        race(*[partial(half_done.forget, job, by=OPERATOR, now=AFTER)] * 3)
        assert told_of(job, "job.forget_requested") == 1
    assert not broken(verify())


def test_where_a_retry_meets_it_the_retry_keeps_what_lies_there() -> None:
    for root, worker, job in left_behind():
        forgotten, _ = race(
            partial(half_done.forget, job, by=OPERATOR, now=AFTER), partial(jobs.retry, job, by=OPERATOR, now=AFTER)
        )
        assert forgotten is Code.STATE_CONFLICT or told_of(job, "job.forget_requested") == 1
        assert HalfDone.objects.get(pk=job.pk).asked_at is None
        assert look(worker, root, job, now=AFTER).forget == []


def test_where_an_order_of_the_same_meets_it_the_bytes_are_used_or_deleted_and_never_both() -> None:
    for root, worker, job in left_behind():
        forgotten, _ = race(
            partial(half_done.forget, job, by=OPERATOR, now=AFTER),
            partial(orders.acquire, root, repo_id=job.repo_id, by=OPERATOR, now=AFTER),
        )
        reply = look(worker, root, job, now=AFTER, types=[wire.ACQUIRE])
        assert reply.job is not None
        assert isinstance(reply.job.order, wire.AcquireOrder)
        refused = forgotten is Code.STATE_CONFLICT
        assert (reply.forget, reply.job.order.expendable) == (([], [job.pk]) if refused else ([job.pk], []))


def test_where_two_words_lack_them_they_are_told_as_gone_once() -> None:
    for root, worker, job in left_behind():
        half_done.forget(job, by=OPERATOR, now=AFTER)
        race(*[partial(look, worker, root, now=AFTER)] * 3)
        assert told_of(job, "job.forgotten") == 1
    assert not broken(verify())
