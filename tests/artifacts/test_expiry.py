"""Leases that nobody renewed, pauses that are over, and jobs of nodes that are gone."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import expiry, jobs
from artifacts.expiry import Expired
from artifacts.models import Job
from modelforge import tasks
from modelforge.celery import app
from nodes import control
from nodes.audit import events
from nodes.callers import Refused
from nodes.models import Node
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, Worker, ordered, proof, stored
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
NOTHING = Expired(lost=0, gone=0, called=0)


def test_a_lease_that_is_not_over_is_left_alone(given: wire.Job, settings: Settings) -> None:
    assert expiry.expire(now=START + settings.JOB_LEASE) == NOTHING
    assert stored(given).state == "running"


def test_a_lease_that_nobody_renewed_spends_an_attempt_and_the_job_waits_again(
    given: wire.Job, over: timedelta, settings: Settings
) -> None:
    """Field case 75."""
    assert expiry.expire(now=START + over) == Expired(lost=1, gone=0, called=0)
    job = stored(given)
    assert (job.state, job.spent, job.not_before, job.failure_code) == ("queued", 1, None, "lease_lost")
    assert (job.lease_id, job.boot_id) == (None, None)
    event = events().get(type="job.put_back")
    assert (event.actor_kind, event.at) == ("system", START + settings.JOB_LEASE)
    assert job.node.work_waits


def test_the_last_attempt_that_is_lost_ends_the_job(job: Job, over: timedelta) -> None:
    at = START
    for _ in range(5):
        Worker(job.node).take(at)
        at += over
        expiry.expire(now=at)
    job.refresh_from_db()
    assert (job.state, job.spent, job.finished_at) == ("failed", 5, at)
    assert told("job.put_back", "job.failed") == ["job.put_back"] * 4 + ["job.failed"]


def test_a_job_that_shall_stop_and_falls_silent_is_cancelled(job: Job, given: wire.Job, over: timedelta) -> None:
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    expiry.expire(now=START + over)
    assert (stored(given).state, stored(given).cancelled_by) == ("cancelled", "admin token")


def test_looking_twice_does_it_once(given: wire.Job, over: timedelta) -> None:
    """Field case 83."""
    expiry.expire(now=START + over)
    assert expiry.expire(now=START + over) == NOTHING
    assert told("job.put_back") == ["job.put_back"]


def test_a_late_result_of_a_lost_lease_is_refused(job: Job, given: wire.Job, over: timedelta) -> None:
    """Field case 76."""
    expiry.expire(now=START + over)
    with pytest.raises(Refused) as caught:
        Worker(job.node).publish(given, START + over)
    assert caught.value.code == Code.LEASE_LOST
    assert stored(given).state == "queued"


def test_jobs_of_a_retired_node_end(job: Job, over: timedelta) -> None:
    other = ordered(job.root, "org/other", now=START + SECOND)
    given = Worker(job.node).take()
    control.retire(job.node, reason="sold", by=OPERATOR, now=START)
    assert expiry.expire(now=START + SECOND) == Expired(lost=0, gone=1, called=0)
    other.refresh_from_db()
    assert (other.state, stored(given).state) == ("cancelled", "running")
    assert expiry.expire(now=START + over) == Expired(lost=1, gone=0, called=0)
    assert stored(given).state == "cancelled"


def test_a_disabled_nodes_jobs_wait_for_it(job: Job, given: wire.Job, over: timedelta) -> None:
    control.disable(job.node, reason="maintenance", by=OPERATOR, now=START)
    expiry.expire(now=START + over)
    assert stored(given).state == "queued"
    control.enable(job.node, by=OPERATOR, now=START + over)
    assert Worker(job.node).take(START + over).id == job.pk


def test_a_node_hears_once_that_a_pause_is_over(job: Job, given: wire.Job) -> None:
    Worker(job.node).fail(given, "stalled")
    Worker(job.node).claim(START + SECOND)
    assert expiry.expire(now=START + 29 * SECOND) == NOTHING
    assert not Node.objects.get().work_waits
    assert expiry.expire(now=START + 30 * SECOND) == Expired(lost=0, gone=0, called=1)
    assert Node.objects.get().work_waits
    assert expiry.expire(now=START + 31 * SECOND) == NOTHING
    assert Worker(job.node).take(START + 31 * SECOND).id == job.pk


def test_a_pause_in_a_root_that_is_not_proven_calls_nobody(job: Job, given: wire.Job) -> None:
    worker = Worker(job.node)
    worker.fail(given, "stalled")
    worker.claim(START + SECOND, proofs=[proof(job.root, fault="marker_missing")])
    assert expiry.expire(now=START + 60 * SECOND) == NOTHING
    assert worker.claim(START + 60 * SECOND).job is None
    found = worker.claim(START + 61 * SECOND, proofs=[proof(job.root)]).job
    assert found is not None


def test_the_schedule_looks_every_quarter_of_a_minute(settings: Settings) -> None:
    assert timedelta(seconds=15) == settings.LEASES_LOOKED_AT
    assert app.conf.beat_schedule["expire leases"]["schedule"].run_every == settings.LEASES_LOOKED_AT


def test_its_task_looks(given: wire.Job) -> None:
    tasks.expire_leases()
    assert stored(given).state == "queued"


def test_a_look_where_nothing_is_due_costs_few_statements(given: wire.Job) -> None:
    worker = Worker(Node.objects.get())
    worker.tell(given, commit=COMMIT, bytes_total=GIB)
    with CaptureQueriesContext(connection) as asked:
        assert expiry.expire(now=START + SECOND) == NOTHING
    assert len(asked) == 6
