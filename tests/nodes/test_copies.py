"""Two processes under one identity: the newer one is heard, the other is refused, flagged, and told once."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.protocol import Code
from agent.wire import Goodbye
from nodes import control, heartbeats
from nodes.callers import Caller, Refused
from nodes.models import BootSession, Heartbeat
from tests.nodes.hearing import START, Agent, a_node, speaker, state_of, told

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def test_a_copy_of_the_identity_is_refused_flagged_and_told_once() -> None:
    """Field case 1: two agents with one state folder beat in turns."""
    node = a_node()
    first, copy = Agent(node), Agent(node, address="192.0.2.99")
    first.beat(START)
    copy.beat(START + SECOND)
    for turn in range(2, 6):
        with pytest.raises(Refused) as refusal:
            first.beat(START + turn * SECOND)
        assert refusal.value.code is Code.IDENTITY_CONFLICT
        copy.beat(START + turn * SECOND)
    node.refresh_from_db()
    assert node.identity_conflict_at == START + 2 * SECOND
    assert node.identity_conflict["address"] == "192.0.2.7"
    assert node.identity_conflict["speaking_from"] == "192.0.2.99"
    assert told() == ["node.online", "node.restarted", "node.identity_conflict"]
    assert Heartbeat.objects.get().boot_id == copy.boot_id


def test_a_beat_that_was_under_way_when_its_process_was_killed_is_no_copy() -> None:
    node = a_node()
    killed, restarted = Agent(node), Agent(node)
    killed.beat(START)
    late = killed.message(START + SECOND)
    restarted.beat(START + 2 * SECOND)
    with pytest.raises(Refused):
        heartbeats.receive(late, by=speaker(node), now=START + 3 * SECOND)
    node.refresh_from_db()
    assert node.identity_conflict_at is None


def test_a_superseded_process_cannot_say_goodbye_for_its_successor() -> None:
    node = a_node()
    old, new = Agent(node), Agent(node)
    old.beat(START)
    new.beat(START + SECOND)
    heartbeats.farewell(Goodbye(boot_id=old.boot_id), by=speaker(node), now=START + 2 * SECOND)
    assert state_of(node) == "online"
    assert told("node.stopped") == []


def test_a_wrong_clock_does_not_hide_a_copy() -> None:
    node = a_node()
    first, copy = Agent(node, clock_off=timedelta(days=-1)), Agent(node, clock_off=timedelta(days=-1))
    first.beat(START)
    copy.beat(START + SECOND)
    with pytest.raises(Refused):
        first.beat(START + 2 * SECOND)
    assert told("node.identity_conflict") == ["node.identity_conflict"]


def test_the_memory_of_old_boots_is_bounded() -> None:
    node = a_node()
    for turn in range(heartbeats.BOOTS_KEPT + 10):
        Agent(node).beat(START + turn * SECOND)
    assert BootSession.objects.count() == heartbeats.BOOTS_KEPT


def test_a_superseded_boot_with_a_clock_at_the_beginning_of_time_is_refused_like_any_other() -> None:
    node = a_node()
    first, second = Agent(node), Agent(node)
    first.beat(START)
    second.beat(START + SECOND)
    with pytest.raises(Refused) as refusal:
        first.beat(START + 2 * SECOND, sent_at=datetime(1, 1, 1, tzinfo=UTC))
    assert refusal.value.code is Code.IDENTITY_CONFLICT


def test_after_the_conflict_is_cleared_the_original_goes_on_though_its_copy_started_last(operator: Caller) -> None:
    """The copy was stopped; the refused one is the original, and need not be restarted."""
    node = a_node()
    original, copy = Agent(node), Agent(node)
    original.beat(START)
    copy.beat(START + SECOND)
    with pytest.raises(Refused):
        original.beat(START + 2 * SECOND)
    heartbeats.farewell(Goodbye(boot_id=copy.boot_id), by=speaker(node), now=START + 3 * SECOND)
    control.clear_conflict(node, reason="the copy is gone", by=operator, now=START + 4 * SECOND)
    original.beat(START + 5 * SECOND)
    assert state_of(node) == "online"
    assert told("node.identity_conflict") == ["node.identity_conflict"]


def test_two_that_still_speak_after_the_conflict_was_cleared_raise_it_again(operator: Caller) -> None:
    node = a_node()
    original, copy = Agent(node), Agent(node)
    original.beat(START)
    copy.beat(START + SECOND)
    with pytest.raises(Refused):
        original.beat(START + 2 * SECOND)
    control.clear_conflict(node, reason="hope", by=operator, now=START + 3 * SECOND)
    original.beat(START + 4 * SECOND)
    with pytest.raises(Refused):
        copy.beat(START + 5 * SECOND)
    assert told("node.identity_conflict") == ["node.identity_conflict"] * 2
