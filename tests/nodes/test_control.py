"""What operators do to nodes: each verb changes one thing, is told once, and refuses what makes no sense."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.protocol import Code
from nodes import control, refusals
from nodes.audit import events
from nodes.callers import Caller, Refused
from nodes.liveness import Liveness
from nodes.models import AuditEvent, Heartbeat, Node
from tests.nodes.hearing import Agent, speaker, told

pytestmark = pytest.mark.django_db

Verb = Callable[..., Node]


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """A node with one label."""
    return make_node(display_name="server01", labels={"site": "office"})


def last() -> AuditEvent:
    """The newest event."""
    event = events().first()
    assert event is not None
    return event


def test_disabling_keeps_who_when_and_why(node: Node, operator: Caller, now: datetime) -> None:
    node = control.disable(node, reason="  fan\nreplaced ", by=operator, now=now)

    assert (node.enabled, node.enabled_reason, node.version, node.updated_at) == (False, "fan replaced", 2, now)
    event = last()
    assert (event.type, event.at, event.actor_label, event.node_id) == ("node.disabled", now, "admin token", node.pk)
    assert event.details == {"reason": "fan replaced"}


def test_enabling_a_disabled_node_needs_no_reason(node: Node, operator: Caller, now: datetime) -> None:
    control.disable(node, reason="maintenance", by=operator, now=now)
    node = control.enable(node, by=operator, now=now)
    assert (node.enabled, node.enabled_reason) == (True, "")
    assert told() == ["node.disabled", "node.enabled"]


def test_disabling_twice_is_refused_with_the_first_reason(node: Node, operator: Caller, now: datetime) -> None:
    control.disable(node, reason="maintenance", by=operator, now=now)
    with pytest.raises(Refused) as caught:
        control.disable(node, reason="again", by=operator, now=now)
    assert caught.value.code == Code.STATE_CONFLICT
    assert "(maintenance)" in caught.value.detail
    assert told() == ["node.disabled"]


def test_enabling_an_enabled_node_is_refused(node: Node, operator: Caller, now: datetime) -> None:
    with pytest.raises(Refused) as caught:
        control.enable(node, by=operator, now=now)
    assert caught.value.code == Code.STATE_CONFLICT


@pytest.mark.parametrize("verb", [control.disable, control.retire], ids=["disable", "retire"])
@pytest.mark.parametrize("reason", ["", "   ", "x" * 256, None, "\x00"], ids=["empty", "blank", "long", "none", "nul"])
def test_a_verb_that_takes_something_away_wants_a_reason(
    node: Node, operator: Caller, now: datetime, verb: Verb, reason: Any
) -> None:
    with pytest.raises(Refused) as caught:
        verb(node, reason=reason, by=operator, now=now)
    assert (caught.value.code, caught.value.errors[0].field) == (Code.INVALID, "reason")
    assert told() == []


@pytest.mark.parametrize("verb", [control.disable, control.retire], ids=["disable", "retire"])
def test_a_reason_of_255_characters_is_enough(node: Node, operator: Caller, now: datetime, verb: Verb) -> None:
    verb(node, reason="x" * 255, by=operator, now=now)
    assert last().details["reason"] == "x" * 255


def test_only_an_operator_may_act(node: Node, auditor: Caller, now: datetime) -> None:
    with pytest.raises(Refused) as caught:
        control.disable(node, reason="because", by=auditor, now=now)
    assert caught.value.code == Code.FORBIDDEN


def test_retiring_leaves_a_tombstone_with_its_history(node: Node, operator: Caller, now: datetime) -> None:
    """Field case 43."""
    Agent(node).beat(now)
    node = control.retire(node, reason="sold", by=operator, now=now + timedelta(hours=1))

    assert node.retired_at == now + timedelta(hours=1)
    assert Heartbeat.objects.get(node=node).liveness == Liveness.OFFLINE
    assert events().filter(node_id=node.pk, type="node.online").exists()
    assert last().details == {"reason": "sold"}


@pytest.mark.parametrize("verb", ["disable", "enable", "retire", "revise", "clear_conflict"])
def test_a_retired_node_takes_no_verb_any_more(node: Node, operator: Caller, now: datetime, verb: str) -> None:
    node = control.retire(node, reason="sold", by=operator, now=now)
    given: dict[str, Any] = {"reason": "because"}
    if verb == "revise":
        given = {"changes": {"role": "other"}, "version": node.version}
    with pytest.raises(Refused) as caught:
        getattr(control, verb)(node, **given, by=operator, now=now)
    assert caught.value.code == Code.STATE_CONFLICT
    assert "final" in caught.value.detail
    assert told() == ["node.retired"]


def test_revising_tells_only_what_changed(node: Node, operator: Caller, now: datetime) -> None:
    changes = {"display_name": "server01", "role": " lab ", "labels": {"rack": "4"}, "lab_eligible": True}
    node = control.revise(node, changes, version=1, by=operator, now=now)

    node.refresh_from_db()
    assert (node.role, node.labels, node.lab_eligible, node.version) == ("lab", {"rack": "4"}, True, 2)
    assert last().details == {
        "changes": {
            "role": {"old": "", "new": "lab"},
            "labels": {"old": {"site": "office"}, "new": {"rack": "4"}},
            "lab_eligible": {"old": False, "new": True},
        }
    }


def test_a_revision_that_changes_nothing_is_no_event_and_no_version(
    node: Node, operator: Caller, now: datetime
) -> None:
    node = control.revise(node, {"labels": {"site": "office"}, "role": ""}, version=1, by=operator, now=now)
    assert (node.version, told()) == (1, [])


def test_a_revision_of_a_version_that_is_gone_is_refused(node: Node, operator: Caller, now: datetime) -> None:
    control.revise(node, {"role": "first"}, version=1, by=operator, now=now)
    with pytest.raises(Refused) as caught:
        control.revise(node, {"role": "second"}, version=1, by=operator, now=now)
    node.refresh_from_db()
    assert (caught.value.code, node.role) == (Code.PRECONDITION_FAILED, "first")


def test_another_verb_meanwhile_makes_a_revision_s_version_old(node: Node, operator: Caller, now: datetime) -> None:
    control.disable(node, reason="maintenance", by=operator, now=now)
    with pytest.raises(Refused) as caught:
        control.revise(node, {"production_eligible": True}, version=1, by=operator, now=now)
    assert caught.value.code == Code.PRECONDITION_FAILED


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hostname": "other"}, "hostname"),
        ({"version": 3}, "version"),
        ({"display_name": " "}, "display_name"),
        ({"display_name": "x" * 256}, "display_name"),
        ({"display_name": None}, "display_name"),
        ({"role": "x" * 65}, "role"),
        ({"role": "a\x00b"}, "role"),
        ({"labels": ["site"]}, "labels"),
        ({"labels": {"site": 1}}, "labels.site"),
        ({"labels": {"site": "x" * 256}}, "labels.site"),
        ({"labels": {"no spaces": "x"}}, "labels.no spaces"),
        ({"labels": {f"k{n}": "" for n in range(33)}}, "labels"),
        ({"production_eligible": "true"}, "production_eligible"),
        ({"lab_eligible": 1}, "lab_eligible"),
    ],
)
def test_a_field_at_fault_is_refused_by_name(
    node: Node, operator: Caller, now: datetime, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(Refused) as caught:
        control.revise(node, changes, version=1, by=operator, now=now)
    assert (caught.value.code, [error.field for error in caught.value.errors]) == (Code.INVALID, [field])


@pytest.mark.parametrize("name", ["a_b", "Großrechner 日本", "<script>alert(1)</script>", "x" * 255])
def test_any_name_may_stand(node: Node, operator: Caller, now: datetime, name: str) -> None:
    """Field case 15."""
    assert control.revise(node, {"display_name": name}, version=1, by=operator, now=now).display_name == name


def test_clearing_a_conflict_tells_what_it_was(node: Node, operator: Caller, now: datetime) -> None:
    first, copy = Agent(node), Agent(node, address="192.0.2.66")
    first.beat(now)
    copy.beat(now + timedelta(seconds=5))
    with pytest.raises(Refused):
        first.beat(now + timedelta(minutes=2))
    node = control.clear_conflict(node, reason="copy stopped", by=operator, now=now + timedelta(minutes=3))

    assert (node.identity_conflict_at, node.identity_conflict) == (None, {})
    details = last().details
    assert details["reason"] == "copy stopped"
    assert details["since"] == (now + timedelta(minutes=2)).isoformat()
    assert details["was"]["speaking"] == str(copy.boot_id)


def test_a_conflict_that_is_none_cannot_be_cleared(node: Node, operator: Caller, now: datetime) -> None:
    with pytest.raises(Refused) as caught:
        control.clear_conflict(node, reason="tidy", by=operator, now=now)
    assert caught.value.code == Code.STATE_CONFLICT


def test_a_disabled_node_that_speaks_is_noted_as_contact_and_changes_nothing(
    node: Node, operator: Caller, now: datetime
) -> None:
    """Field case 24."""
    control.disable(node, reason="maintenance", by=operator, now=now)
    refusals.note(speaker(node), Code.NODE_DISABLED, now=now + timedelta(seconds=15))

    node.refresh_from_db()
    assert (node.refused_at, node.refused_code) == (now + timedelta(seconds=15), "node_disabled")
    assert (node.facts, Heartbeat.objects.get(node=node).last_heard_at) == (None, None)
