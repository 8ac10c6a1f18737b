"""The control plane's own absence, and its clock, cost no agent its lease."""

from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from agent import wire
from artifacts import expiry
from artifacts.expiry import Expired
from artifacts.models import Job
from nodes import heartbeats
from nodes.models import Heartbeat
from tests.artifacts.ordering import SECOND, Worker, stored
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
NOTHING = Expired(lost=0, gone=0, called=0)


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
