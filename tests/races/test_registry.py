"""The registry under real concurrency: sweeps, beats, operators and publications that meet on one node."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from agent import wire
from agent.protocol import Code
from nodes import control, heartbeats, inventory
from nodes.audit import broken, events, record, verify
from nodes.callers import SYSTEM, Caller, Refused
from nodes.event_types import EventType
from nodes.models import BootSession, Heartbeat, Node
from tests.nodes.hearing import INTERVAL, START, Agent, a_node, speaker, state_of, told
from tests.nodes.publishing import facts
from tests.races.racing import race

pytestmark = pytest.mark.django_db(transaction=True)

STALE = START + 3 * INTERVAL
TICK = timedelta(milliseconds=1)
ROUNDS = 6


def heard(name: str = "server01") -> Agent:
    """An agent whose first beat came at START."""
    agent = Agent(a_node(name))
    agent.beat(START)
    return agent


def test_four_sweeps_at_once_tell_each_silence_once() -> None:
    """Field case 83."""
    agents = [heard(f"server{number:02}") for number in range(30)]
    overdue = START + 7 * INTERVAL
    outcomes = race(*[partial(heartbeats.sweep, now=overdue)] * 4)
    assert sum(swept.offline for swept in outcomes if isinstance(swept, heartbeats.Swept)) == len(agents)
    for agent in agents:
        mine = events().filter(node_id=agent.node.pk).order_by("position")
        assert [(e.type, e.at) for e in mine][1:] == [
            (EventType.NODE_STALE, STALE),
            (EventType.NODE_OFFLINE, START + 6 * INTERVAL),
        ]
    assert not broken(verify())


@pytest.mark.parametrize("when", [-TICK, timedelta(), TICK], ids=["just before", "at", "just after"])
def test_a_beat_that_meets_a_sweep_at_the_deadline_leaves_a_history_that_adds_up(when: timedelta) -> None:
    for number in range(ROUNDS):
        agent = heard(f"server{number}")
        by, beat = speaker(agent.node), agent.message(STALE + when)
        race(
            partial(heartbeats.receive, beat, by=by, now=STALE + when),
            partial(heartbeats.sweep, now=STALE),
        )
        mine = [e.type for e in events().filter(node_id=agent.node.pk).order_by("position")]
        assert mine in ([EventType.NODE_ONLINE], [EventType.NODE_ONLINE, EventType.NODE_STALE, EventType.NODE_RETURNED])
        assert state_of(agent.node) == "online"
        assert Heartbeat.objects.get(node=agent.node).last_heard_at == STALE + when
        assert when < timedelta() or EventType.NODE_RETURNED in mine, "the deadline had passed"
    assert not broken(verify())


def after_retirement(node: Node) -> list[str]:
    """What the history tells of a node behind its retirement, refusals aside."""
    mine = [e.type for e in events().filter(node_id=node.pk).order_by("position")]
    return [type for type in mine[mine.index(EventType.NODE_RETIRED) + 1 :] if type != EventType.NODE_REFUSED]


@pytest.mark.parametrize("restarted", [False, True], ids=["same start", "new start"])
def test_a_beat_that_meets_its_nodes_retirement_cannot_bring_it_back(operator: Caller, restarted: bool) -> None:
    for number in range(ROUNDS):
        agent = heard(f"server{number}")
        speaking = Agent(agent.node) if restarted else agent
        now = START + INTERVAL
        by, beat = speaker(agent.node), speaking.message(now)
        race(
            partial(heartbeats.receive, beat, by=by, now=now),
            partial(control.retire, agent.node, reason="sold", by=operator, now=now),
        )
        assert state_of(agent.node) == "offline"
        assert after_retirement(agent.node) == []


@pytest.mark.parametrize("restarted", [False, True], ids=["same start", "new start"])
def test_a_beat_that_was_proven_before_the_retirement_and_comes_after_it_is_refused(
    operator: Caller, restarted: bool
) -> None:
    agent = heard()
    speaking = Agent(agent.node) if restarted else agent
    by, beat = speaker(agent.node), speaking.message(START + INTERVAL)
    control.retire(agent.node, reason="sold", by=operator, now=START + INTERVAL)
    with pytest.raises(Refused) as refused:
        heartbeats.receive(beat, by=by, now=START + INTERVAL)
    assert refused.value.code is Code.NODE_RETIRED
    assert state_of(agent.node) == "offline"
    assert after_retirement(agent.node) == []


def test_an_unusual_beat_that_was_proven_before_its_node_was_disabled_is_refused(operator: Caller) -> None:
    agent = heard()
    by, beat = speaker(agent.node), Agent(agent.node).message(START + INTERVAL)
    control.disable(agent.node, reason="a fan is loud", by=operator, now=START + INTERVAL)
    with pytest.raises(Refused) as refused:
        heartbeats.receive(beat, by=by, now=START + INTERVAL)
    assert refused.value.code is Code.NODE_DISABLED
    assert told(EventType.NODE_RESTARTED) == []


def test_facts_that_meet_a_disabling_are_taken_whole_or_refused(operator: Caller) -> None:
    for number in range(ROUNDS):
        agent = heard(f"server{number}")
        by, now = speaker(agent.node), START + INTERVAL
        said = facts(boot_id=agent.boot_id)
        published, _ = race(
            partial(inventory.publish, said, by=by, now=now),
            partial(control.disable, agent.node, reason="a fan is loud", by=operator, now=now),
        )
        node = Node.objects.get(pk=agent.node.pk)
        assert not node.enabled
        if isinstance(published, wire.FactsReply):
            assert (node.facts_digest, node.refused_code) == (published.facts_digest, "")
        else:
            assert (published, node.facts_digest, node.facts) == (Code.NODE_DISABLED, "known", None)
            assert node.refused_code == Code.NODE_DISABLED


def test_of_two_revisions_of_one_version_one_is_too_late(operator: Caller) -> None:
    node = a_node()
    outcomes = race(
        *[
            partial(control.revise, node, {"role": role}, version=node.version, by=operator, now=START)
            for role in ("inference", "training")
        ]
    )
    assert [outcome for outcome in outcomes if outcome == Code.PRECONDITION_FAILED] == [Code.PRECONDITION_FAILED]
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Node)]
    kept = Node.objects.get(pk=node.pk)
    assert (kept.role, kept.version) == (winner.role, node.version + 1)
    assert told(EventType.NODE_REVISED) == [EventType.NODE_REVISED]


def test_of_two_new_process_starts_at_once_one_speaks_and_the_other_is_a_copy() -> None:
    """Field case 1."""
    for number in range(ROUNDS):
        node, now = heard(f"server{number}").node, START + INTERVAL
        pair = [Agent(node), Agent(node)]
        race(*[partial(heartbeats.receive, one.message(now), by=speaker(node), now=now) for one in pair])
        speaking = Heartbeat.objects.get(node=node).boot_id
        assert BootSession.objects.get(node=node, superseded_at=None).boot_id == speaking
        (copy,) = [one for one in pair if one.boot_id != speaking]
        for _ in range(2):
            with pytest.raises(Refused) as refused:
                copy.beat(now + INTERVAL)
            assert refused.value.code is Code.IDENTITY_CONFLICT
        assert events().filter(node_id=node.pk, type=EventType.IDENTITY_CONFLICT).count() == 1
        assert Heartbeat.objects.get(node=node).boot_id == speaking


def test_eight_writers_of_history_keep_its_chain_whole() -> None:
    node = a_node()

    def write(writer: int) -> None:
        for number in range(25):
            with transaction.atomic():
                record(EventType.NODE_REVISED, by=SYSTEM, about=node, at=START, writer=writer, number=number)

    race(*[partial(write, writer) for writer in range(8)])
    assert list(events().order_by("position").values_list("position", flat=True)) == list(range(1, 201))
    assert not broken(verify())
    for writer in range(8):
        mine = events().filter(details__writer=writer).order_by("position")
        assert [event.details["number"] for event in mine] == list(range(25))
