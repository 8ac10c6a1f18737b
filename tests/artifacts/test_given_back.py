"""A job that its agent gives back over and over, without getting further, pauses as one that failed does."""

from datetime import datetime, timedelta

import pytest

from artifacts import jobs
from artifacts.models import Job, StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, TYPES, Worker, ordered, proof
from tests.nodes import browsing
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def job(root: StorageRoot) -> Job:
    """An order that waits."""
    return ordered(root)


def give_back(worker: Worker, at: datetime, *, done: int = 0) -> Job:
    """Claim it, get so far, and give it back at once."""
    given = worker.take(at)
    if done:
        worker.tell(given, at, commit=COMMIT, bytes_total=GIB, bytes_done=done)
    worker.finish(given, at, outcome="released")
    return Job.objects.get(pk=given.id)


def pauses(worker: Worker, times: int, *, step: int = 0) -> list[timedelta]:
    """How long it pauses each time, taken again as soon as that is over."""
    found, at = [], START
    for number in range(1, times + 1):
        back = give_back(worker, at, done=number * step)
        found.append((back.not_before or at) - at)
        at += found[-1] + SECOND
    return found


def test_the_first_times_cost_nothing_and_then_it_pauses_longer_and_longer(worker: Worker, job: Job) -> None:
    assert pauses(worker, 7) == [timedelta()] * 3 + [MINUTE / 2, MINUTE, 2 * MINUTE, 4 * MINUTE]
    job.refresh_from_db()
    assert (job.state, job.spent) == ("queued", 0)


def test_it_never_pauses_longer_than_half_an_hour(worker: Worker, job: Job) -> None:
    assert pauses(worker, 14)[-1] == 30 * MINUTE


def test_one_that_gets_further_each_time_never_pauses(worker: Worker, job: Job) -> None:
    assert pauses(worker, 12, step=GIB // 16) == [timedelta()] * 12


def test_one_that_got_further_begins_to_be_counted_anew(worker: Worker, job: Job) -> None:
    pauses(worker, 3)
    assert give_back(worker, START + MINUTE, done=GIB // 2).given_back == 0
    assert give_back(worker, START + 2 * MINUTE, done=GIB // 2).not_before is None


def test_it_is_not_given_out_before_the_pause_is_over(worker: Worker, job: Job) -> None:
    pauses(worker, 4)
    at = Job.objects.get().not_before
    assert at is not None
    assert worker.claim(at - SECOND).job is None
    assert worker.claim(at).job is not None


def test_another_job_of_the_node_goes_on_meanwhile(worker: Worker, job: Job) -> None:
    pauses(worker, 4)
    other = ordered(job.root, "org/other", now=START + SECOND)
    assert worker.take(START + 10 * SECOND).id == other.pk


def test_roots_that_flip_under_it_and_types_that_come_and_go_count_too(worker: Worker, job: Job) -> None:
    for _ in range(2):
        worker.take()
        worker.claim(proofs=[proof(job.root, fault="marker_missing")])
        worker.claim(types=[], proofs=[proof(job.root)])
    for _ in range(2):
        worker.take()
        worker.claim(types=[kind for kind in TYPES if kind != job.type])
    job.refresh_from_db()
    assert (job.given_back, job.not_before) == (4, START + MINUTE / 2)


def test_a_retry_begins_with_none(worker: Worker, job: Job) -> None:
    pauses(worker, 5)
    jobs.cancel(job, by=OPERATOR, now=START)
    jobs.retry(job, by=OPERATOR, now=START)
    job.refresh_from_db()
    assert (job.given_back, job.not_before, Node.objects.get().work_waits) == (0, None, True)


def test_its_page_says_why_it_waits(worker: Worker, job: Job) -> None:
    pauses(worker, 4)
    Job.objects.update(not_before=datetime(2100, 1, 1, tzinfo=START.tzinfo))
    page = browsing.an_operator().get(f"/admin/artifacts/job/{job.pk}/change/").content.decode()
    assert "gave it back 4 times in a row and got no further" in page
