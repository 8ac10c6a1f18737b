"""The control plane's own absences, and the interval that it grants."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from nodes import continuity, heartbeats
from nodes.audit import events
from nodes.models import ControlPlane, Heartbeat
from tests.nodes.hearing import INTERVAL, START, Agent, a_node, state_of, told

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def a_swept_fleet(size: int = 3) -> list[Agent]:
    """Nodes heard at START, and a sweep right after it."""
    agents = [Agent(a_node(f"server{number:02}")) for number in range(size)]
    for agent in agents:
        agent.beat(START)
    heartbeats.sweep(now=START + SECOND)
    return agents


def test_ten_minutes_away_are_one_gap_and_nobody_is_offline() -> None:
    """Field case 33."""
    agents = a_swept_fleet()
    back = START + 10 * MINUTE
    heartbeats.sweep(now=back)
    assert {state_of(agent.node) for agent in agents} == {"online"}
    (event,) = events().filter(type="control_plane.gap")
    assert event.details["seconds"] == 599
    for seconds in range(5, 41, 5):
        heartbeats.sweep(now=back + seconds * SECOND)
    assert told("node.stale", "node.offline", "control_plane.gap") == ["control_plane.gap"]


def test_a_beat_that_comes_before_the_first_sweep_after_a_gap_is_no_return() -> None:
    agents = a_swept_fleet()
    agents[0].beat(START + 10 * MINUTE)
    heartbeats.sweep(now=START + 10 * MINUTE + SECOND)
    assert told("node.stale", "node.returned", "control_plane.gap") == ["control_plane.gap"]
    assert {state_of(agent.node) for agent in agents} == {"online"}


def test_a_node_that_stays_silent_after_the_gap_gets_a_fresh_full_window() -> None:
    agents = a_swept_fleet()
    back = START + 10 * MINUTE
    heartbeats.sweep(now=back)
    for seconds in range(5, 101, 5):
        heartbeats.sweep(now=back + seconds * SECOND)
    assert state_of(agents[0].node) == "offline"
    assert events().filter(type="node.stale")[0].at == back + 3 * INTERVAL


def test_a_node_that_was_overdue_before_the_gap_is_told_by_its_own_deadline() -> None:
    silent, loud = a_swept_fleet(2)
    for turn in range(1, 4):
        loud.beat(START + turn * INTERVAL + SECOND)
    heartbeats.sweep(now=START + 10 * MINUTE)
    assert events().get(type="node.stale").at == START + 3 * INTERVAL
    assert state_of(silent.node) == "stale"
    assert state_of(loud.node) == "online"


def test_a_sweep_that_did_not_run_while_nodes_were_heard_is_no_gap() -> None:
    """Field case 81: the worker was gone, the web was not; who fell silent meanwhile did so for itself."""
    silent, loud = a_swept_fleet(2)
    for turn in range(1, 41):
        loud.beat(START + turn * INTERVAL)
    heartbeats.sweep(now=START + 10 * MINUTE + SECOND)
    assert told("control_plane.gap") == []
    assert (state_of(silent.node), state_of(loud.node)) == ("offline", "online")


def test_liveness_read_between_two_sweeps_is_right() -> None:
    a_swept_fleet(1)
    heart = Heartbeat.objects.get()
    seen = [heart.seen_at(START + after) for after in (44 * SECOND, 45 * SECOND, 90 * SECOND)]
    assert seen == ["online", "stale", "offline"]
    assert heart.liveness == "online"


def test_the_granted_interval_grows_with_the_fleet(settings: Settings) -> None:
    """Field case 32: the control plane never hears more than it bears."""
    settings.MAX_HEARTBEATS_PER_SECOND = 1
    agents = a_swept_fleet(40)
    continuity.forget_grant()
    reply = agents[0].beat(START + 2 * SECOND)
    assert reply.heartbeat_interval_seconds == 40
    assert Heartbeat.objects.get(node=agents[0].node).offline_at == START + 242 * SECOND


def test_a_sweep_with_nothing_overdue_asks_a_constant_number_of_questions() -> None:
    a_swept_fleet(3)
    with CaptureQueriesContext(connection) as few:
        heartbeats.sweep(now=START + 2 * SECOND)
    for number in range(20):
        Agent(a_node(f"more{number}")).beat(START)
    with CaptureQueriesContext(connection) as many:
        heartbeats.sweep(now=START + 3 * SECOND)
    assert len(few) == len(many)


def test_more_overdue_nodes_than_one_batch_are_all_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuity, "BATCH", 4)
    agents = a_swept_fleet(10)
    for seconds in range(5, 100, 5):
        heartbeats.sweep(now=START + seconds * SECOND)
    assert {state_of(agent.node) for agent in agents} == {"offline"}
    assert len(told("node.offline")) == 10


def test_two_sweeps_of_one_moment_tell_everything_once() -> None:
    """Field case 83."""
    a_swept_fleet(3)
    for _ in range(2):
        heartbeats.sweep(now=START + 46 * SECOND)
    assert told("node.stale") == ["node.stale"] * 3


def test_the_first_sweep_ever_finds_no_gap() -> None:
    heartbeats.sweep(now=START)
    assert told() == []
    assert ControlPlane.objects.get().swept_at == START
