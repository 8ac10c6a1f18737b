"""Hearing nodes: the common beat, silence, returns, restarts, planned stops."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.wire import Goodbye
from nodes import continuity, heartbeats
from nodes.audit import events
from nodes.models import BootSession, Heartbeat, Node
from tests.nodes.hearing import INTERVAL, START, Agent, a_node, speaker, state_of, told

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def test_the_first_beat_makes_a_node_online_and_is_told_once() -> None:
    node = a_node()
    agent = Agent(node)
    reply = agent.beat(START)
    agent.beat(START + INTERVAL)
    assert state_of(node) == "online"
    assert told() == ["node.online"]
    assert reply.heartbeat_interval_seconds == INTERVAL.total_seconds()


def test_a_beat_as_expected_costs_one_update_and_no_history() -> None:
    agent = Agent(a_node())
    agent.beat(START)
    now = START + 5 * SECOND  # within the ten seconds for which a process remembers the granted interval
    by, message = speaker(agent.node), agent.message(now)
    with CaptureQueriesContext(connection) as queries:
        heartbeats.receive(message, by=by, now=now)
    assert len(queries) == 1, [query["sql"] for query in queries]
    assert queries[0]["sql"].lstrip().startswith("UPDATE nodes_heartbeat")
    assert Heartbeat.objects.get().stale_at == now + 3 * INTERVAL


def test_a_hundred_thousand_beats_would_add_no_rows() -> None:
    """Field case 42, at a thousand: what a beat writes does not depend on how many came before."""
    agent = Agent(a_node())
    agent.beat(START)
    before = (events().count(), BootSession.objects.count())
    for turn in range(1, 1000):
        agent.beat(START + turn * SECOND)
    assert (events().count(), BootSession.objects.count()) == before


def test_silence_is_stale_then_offline_each_dated_at_its_deadline_however_late_it_is_noticed() -> None:
    node = a_node()
    Agent(node).beat(START)
    heartbeats.sweep(now=START + 44 * SECOND)
    assert state_of(node) == "online"
    heartbeats.sweep(now=START + 47 * SECOND)
    assert state_of(node) == "stale"
    heartbeats.sweep(now=START + 89 * SECOND)
    heartbeats.sweep(now=START + 91 * SECOND)
    assert state_of(node) == "offline"
    dated = {event.type: event.at - START for event in events()}
    assert dated["node.stale"] == timedelta(seconds=45)
    assert dated["node.offline"] == timedelta(seconds=90)
    heartbeats.sweep(now=START + 93 * SECOND)
    assert told("node.stale", "node.offline") == ["node.stale", "node.offline"]


def test_a_return_is_one_event_with_the_length_of_the_outage() -> None:
    agent = Agent(a_node())
    agent.beat(START)
    for seconds in range(5, 121, 5):
        heartbeats.sweep(now=START + seconds * SECOND)
    agent.beat(START + 123 * SECOND)
    agent.beat(START + 124 * SECOND)
    assert state_of(agent.node) == "online"
    (event,) = events().filter(type="node.returned")
    assert (event.details["was"], event.details["outage_seconds"], event.details["planned"]) == ("offline", 123, False)


def test_a_node_that_returns_before_the_sweep_noticed_is_told_with_the_silence_before_it() -> None:
    agent = Agent(a_node())
    agent.beat(START)
    heartbeats.sweep(now=START + 40 * SECOND)
    agent.beat(START + 50 * SECOND)
    assert told() == ["node.online", "node.stale", "node.returned"]
    assert events().get(type="node.stale").at == START + 45 * SECOND


def test_a_crash_and_quick_restart_is_no_outage_and_no_conflict() -> None:
    """Field case 86: a new boot of the same credential takes over at once."""
    node = a_node()
    Agent(node).beat(START)
    restarted = Agent(node)
    restarted.beat(START + SECOND)
    assert Heartbeat.objects.get().boot_id == restarted.boot_id
    assert told() == ["node.online", "node.restarted"]


def test_a_beat_that_arrives_twice_or_late_changes_nothing() -> None:
    agent = Agent(a_node())
    agent.beat(START)
    message = agent.message(START + SECOND)
    agent.beat(START + 2 * SECOND)
    before = Heartbeat.objects.values().get()
    heartbeats.receive(message, by=speaker(agent.node), now=START + 3 * SECOND)
    assert Heartbeat.objects.values().get() == before


def test_a_planned_stop_is_offline_at_once_and_reads_as_one() -> None:
    """Field case 38."""
    node = a_node()
    agent = Agent(node)
    agent.beat(START)
    heartbeats.farewell(Goodbye(boot_id=agent.boot_id, reason="SIGTERM"), by=speaker(node), now=START + SECOND)
    for seconds in range(5, 121, 5):
        heartbeats.sweep(now=START + seconds * SECOND)
    assert state_of(node) == "offline"
    assert told() == ["node.online", "node.stopped"]
    Agent(node).beat(START + 121 * SECOND)
    event = events().get(type="node.returned")
    assert (event.details["planned"], event.details["outage_seconds"]) == (True, 120)
    heart = Heartbeat.objects.get()
    assert (heart.stopped_at, heart.stop_reason) == (None, "")


@pytest.mark.parametrize("days", [-1, 1])
def test_an_agent_whose_clock_is_off_is_judged_by_ours_and_its_skew_is_kept(days: int) -> None:
    """Field case 21."""
    node = a_node()
    agent = Agent(node, clock_off=timedelta(days=days))
    agent.beat(START)
    agent.beat(START + INTERVAL)
    heartbeats.sweep(now=START + 2 * INTERVAL)
    heart = Heartbeat.objects.get()
    assert (heart.liveness, heart.clock_skew_seconds) == ("online", days * 86400)


def test_a_new_agent_version_is_told_with_the_old_one() -> None:
    node = a_node()
    Agent(node).beat(START)
    Agent(node, version="0.2.0").beat(START + SECOND)
    event = events().get(type="node.agent_updated")
    assert (event.details["old"], event.details["new"]) == ("0.1.0", "0.2.0")


def test_facts_are_asked_for_until_they_are_the_ones_that_the_agent_holds() -> None:
    node = a_node()
    agent = Agent(node)
    assert agent.beat(START, facts_digest="other").want_facts
    assert not agent.beat(START + SECOND, facts_digest="known").want_facts
    continuity.ask_for_facts()
    assert agent.beat(START + 2 * SECOND, facts_digest="known").want_facts


def test_a_beat_after_a_refusal_clears_it_and_says_so() -> None:
    node = a_node()
    agent = Agent(node)
    agent.beat(START)
    Node.objects.filter(pk=node.pk).update(refused_code="node_disabled", refused_at=START)
    agent.beat(START + SECOND)
    node.refresh_from_db()
    assert (node.refused_code, node.refused_at) == ("", None)
    assert told("node.accepted_again") == ["node.accepted_again"]
