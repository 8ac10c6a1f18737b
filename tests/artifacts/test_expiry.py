"""Leases that nobody renewed, pauses that are over, jobs of nodes that are gone, and the control plane's absence."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import expiry, jobs
from artifacts.expiry import Expired
from artifacts.models import Job, StorageRoot
from modelforge import tasks
from modelforge.celery import app
from nodes import control, heartbeats
from nodes.audit import events
from nodes.callers import Refused
from nodes.models import Heartbeat, Node
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, Worker, ordered, proof
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
NOTHING = Expired(lost=0, gone=0, called=0)


@pytest.fixture
def job(root: StorageRoot) -> Job:
    """A job, claimed below."""
    return ordered(root)


@pytest.fixture
def given(job: Job) -> wire.Job:
    """The job as its agent holds it since START."""
    return Worker(job.node).take()


@pytest.fixture
def over(settings: Settings) -> timedelta:
    """How long after START the lease is over."""
    lease: timedelta = settings.JOB_LEASE
    return lease + SECOND


def stored(given: wire.Job) -> Job:
    """The job as it stands."""
    return Job.objects.get(pk=given.id)


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


# The control plane's own absence.


@pytest.fixture
def away(given: wire.Job, settings: Settings) -> timedelta:
    """The control plane swept last when the lease was given, and comes back this long after."""
    heartbeats.sweep(now=START)
    lease: timedelta = settings.JOB_LEASE
    return lease + timedelta(hours=1)


def test_a_lease_that_ended_while_nobody_could_renew_it_is_given_a_new_length(
    given: wire.Job, away: timedelta, settings: Settings
) -> None:
    back = START + away
    assert expiry.expire(now=back) == NOTHING
    assert told("control_plane.gap") == ["control_plane.gap"]
    assert stored(given).lease_expires_at == back + settings.JOB_LEASE
    ends = back + settings.JOB_LEASE
    for seconds in range(0, 300, 30):
        heartbeats.sweep(now=back + seconds * SECOND)
    assert expiry.expire(now=ends) == NOTHING
    assert expiry.expire(now=ends + SECOND).lost == 1


def test_it_is_so_too_where_a_sweep_noticed_first(given: wire.Job, away: timedelta, settings: Settings) -> None:
    back = START + away
    heartbeats.sweep(now=back)
    assert expiry.expire(now=back + 10 * SECOND) == NOTHING
    assert stored(given).lease_expires_at == back + settings.JOB_LEASE


def test_a_lease_that_ends_right_after_the_absence_is_given_a_new_length(given: wire.Job, settings: Settings) -> None:
    heartbeats.sweep(now=START)
    back = START + settings.JOB_LEASE - SECOND
    heartbeats.sweep(now=back)
    assert expiry.expire(now=back + 2 * SECOND) == NOTHING
    assert stored(given).lease_expires_at == back + settings.JOB_LEASE


def test_a_lease_that_had_ended_before_the_absence_is_over(given: wire.Job, over: timedelta) -> None:
    heartbeats.sweep(now=START + over)
    assert expiry.expire(now=START + over + timedelta(hours=1)).lost == 1


def test_a_lease_that_was_given_after_the_absence_is_as_long_as_any(
    job: Job, given: wire.Job, away: timedelta, settings: Settings
) -> None:
    back = START + away
    expiry.expire(now=back)
    taken = back + 10 * SECOND
    Worker(job.node).take(taken)
    expiry.expire(now=taken + SECOND)
    assert stored(given).lease_expires_at == taken + settings.JOB_LEASE


def test_a_result_from_the_time_of_the_absence_counts(job: Job, given: wire.Job, away: timedelta) -> None:
    back = START + away
    expiry.expire(now=back)
    assert Worker(job.node).publish(given, back + SECOND) == "succeeded"


# The control plane's clock.


def stepped(step: timedelta, *, noticed: bool) -> datetime:
    """The next look after the clock was set forward by so much since START, and a beat was heard before all else.

    The node beats so rarely that it is not stale by the new time: it is no absence that its beat would tell of.
    """
    heartbeats.sweep(now=START)
    Heartbeat.objects.update(last_heard_at=START + step, stale_at=START + 9 * step)
    if noticed:
        heartbeats.sweep(now=START + step + SECOND)
    return START + step + 2 * SECOND


@pytest.fixture(params=[True, False], ids=["a sweep came first", "a look came first"])
def late(request: pytest.FixtureRequest, given: wire.Job, settings: Settings) -> datetime:
    """The clock was set forward by two leases."""
    return stepped(2 * settings.JOB_LEASE, noticed=request.param)


def test_a_clock_that_is_set_forward_costs_no_lease(given: wire.Job, late: datetime, settings: Settings) -> None:
    assert expiry.expire(now=late) == NOTHING
    assert told("control_plane.gap") == []
    assert late < (stored(given).lease_expires_at or late) <= late + settings.JOB_LEASE


def test_its_agent_goes_on_and_its_result_counts(job: Job, given: wire.Job, late: datetime) -> None:
    expiry.expire(now=late)
    assert Worker(job.node).publish(given, late + SECOND) == "succeeded"


def test_a_step_that_no_sweep_would_notice_changes_nothing(given: wire.Job, settings: Settings) -> None:
    at = stepped(settings.GAP_AFTER - 5 * SECOND, noticed=True)
    assert expiry.expire(now=at) == NOTHING
    assert stored(given).lease_expires_at == START + settings.JOB_LEASE


@pytest.mark.parametrize("noticed", [True, False])
def test_a_lease_that_had_ended_before_the_step_is_over(given: wire.Job, settings: Settings, noticed: bool) -> None:
    Job.objects.update(lease_expires_at=START - SECOND)
    assert expiry.expire(now=stepped(2 * settings.JOB_LEASE, noticed=noticed)).lost == 1


def test_an_agent_that_is_silent_after_the_step_loses_its_lease_then(given: wire.Job, late: datetime) -> None:
    lost = 0
    for seconds in range(0, 331, 15):
        lost += expiry.expire(now=late + seconds * SECOND).lost
        heartbeats.sweep(now=late + seconds * SECOND)
    assert lost == 1


def test_a_clock_that_is_set_back_gives_no_lease_more_than_its_length(
    given: wire.Job, away: timedelta, settings: Settings
) -> None:
    expiry.expire(now=START + away)
    assert told("control_plane.gap") == ["control_plane.gap"]
    Job.objects.update(lease_expires_at=START + SECOND)
    assert expiry.expire(now=START + 2 * SECOND).lost == 1


# The schedule.


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
