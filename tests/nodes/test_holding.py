"""A node that tells too much is held back: what it adds to the history is bounded, and nothing of it is lost."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent.protocol import HEARTBEAT, VERSION_HEADER, Code
from agent.wire import Goodbye
from enrollment import credentials
from enrollment.models import NodeCredential
from modelforge import tasks
from nodes import allowance, audit, control, heartbeats, holding, inventory
from nodes.audit import events
from nodes.callers import Caller, Refused
from nodes.models import Heartbeat, Node
from tests.conftest import Enrolled
from tests.nodes import browsing
from tests.nodes.hearing import START, Agent, a_node, speaker, told
from tests.nodes.publishing import facts

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
LIMIT = 8
RESERVED = LIMIT // 4


@pytest.fixture(autouse=True)
def _little(settings: Settings) -> None:
    """A node may make eight events an hour, and two more by its comings and goings."""
    settings.NODE_HISTORY_PER_HOUR = LIMIT


@pytest.fixture
def node() -> Node:
    """A node whose agent was heard once, which is paid off."""
    node = a_node()
    Agent(node).beat(START)
    Node.objects.update(history_owed_until=None)
    return node


def restarted(node: Node, times: int, every: timedelta = SECOND) -> Agent:
    """So many process starts, one after the other; the last of them."""
    for number in range(1, times + 1):
        agent = Agent(node)
        agent.beat(START + number * every)
    return agent


def test_restarts_beyond_the_allowance_are_counted_and_not_told_one_by_one(node: Node) -> None:
    restarted(node, 50)
    assert told("node.restarted") == ["node.restarted"] * (LIMIT + RESERVED)
    node.refresh_from_db()
    assert node.history_untold == {"node.restarted": 50 - LIMIT - RESERVED}
    assert told("node.held_back") == ["node.held_back"]


def test_every_one_of_them_is_heard(node: Node) -> None:
    last = restarted(node, 50)
    heart = Heartbeat.objects.get(node=node)
    assert (heart.boot_id, heart.last_heard_at) == (last.boot_id, START + 50 * SECOND)


def test_restarts_within_the_allowance_are_told_one_by_one(node: Node) -> None:
    restarted(node, 50, every=HOUR / LIMIT)
    assert len(told("node.restarted", "node.returned")) == 50
    assert told("node.held_back") == []


def test_comings_and_goings_are_bounded_too(node: Node) -> None:
    for number in range(1, 40):
        agent = Agent(node)
        agent.beat(START + 2 * number * SECOND)
        goodbye = Goodbye(boot_id=agent.boot_id, reason="again")
        heartbeats.farewell(goodbye, by=speaker(node), now=START + (2 * number + 1) * SECOND)
    assert events().count() < LIMIT + RESERVED + 4
    assert Heartbeat.objects.get(node=node).stop_reason == "again"


def test_a_plain_beat_of_a_node_that_is_held_back_costs_what_any_costs(node: Node) -> None:
    agent = restarted(node, 50)
    agent.beat(START + 60 * SECOND)
    by, message = speaker(node), agent.message(START + 61 * SECOND)
    with CaptureQueriesContext(connection) as asked:
        heartbeats.receive(message, by=by, now=START + 61 * SECOND)
    assert len(asked) == 1


def test_once_it_owes_nothing_it_is_let_go_and_the_count_is_told(node: Node) -> None:
    restarted(node, 50)
    owed = Node.objects.get().history_owed_until
    assert owed is not None
    assert holding.let_go(now=owed - SECOND) == 0
    assert holding.let_go(now=owed + SECOND) == 1
    event = events().get(type="node.let_go")
    assert (event.at, event.actor_kind) == (owed, "system")
    assert event.details["untold"] == {"node.restarted": 50 - LIMIT - RESERVED}
    node.refresh_from_db()
    assert (node.held_back_at, node.history_untold) == (None, None)
    assert holding.let_go(now=owed + SECOND) == 0


def test_the_schedule_lets_go(node: Node) -> None:
    restarted(node, 50)
    tasks.prune()
    assert told("node.let_go") == ["node.let_go"]


def test_the_allowance_comes_back_with_time(node: Node) -> None:
    allowance.spend(node.pk, LIMIT, now=START)
    node.refresh_from_db()
    assert allowance.wait(node, now=START) == HOUR / LIMIT
    assert allowance.wait(node, now=START + HOUR / LIMIT) is None


def test_what_was_saved_up_is_an_hours_worth_and_no_more(node: Node) -> None:
    later = START + timedelta(days=9)
    allowance.spend(node.pk, 1, now=START)
    allowance.spend(node.pk, LIMIT, now=later)
    node.refresh_from_db()
    assert node.history_owed_until == later + HOUR
    assert allowance.wait(node, now=later) == HOUR / LIMIT


def test_facts_that_flap_are_refused_and_taken_later(node: Node) -> None:
    taken = refused = 0
    waits = []
    for number in range(60):
        at = START + 2 * number * SECOND
        try:
            inventory.publish(facts(hostname=f"server-{number}"), by=speaker(node), now=at)
            taken += 1
        except Refused as no:
            refused += 1
            waits.append((at, no.code, no.retry_after or HOUR))
    assert {code for _, code, _ in waits} == {Code.THROTTLED}
    assert (taken, refused) == (LIMIT, 60 - LIMIT)
    assert told("node.held_back") == ["node.held_back"]
    assert Node.objects.get().hostname == f"server-{LIMIT - 1}"
    at, _, wait = waits[-1]
    inventory.publish(facts(hostname="at last"), by=speaker(node), now=at + wait)
    assert Node.objects.get().hostname == "at last"


def test_facts_that_say_nothing_new_are_taken_all_the_same(node: Node) -> None:
    for number in range(LIMIT):
        inventory.publish(facts(hostname=f"server-{number}"), by=speaker(node), now=START + 2 * number * SECOND)
    again = inventory.publish(facts(hostname=f"server-{LIMIT - 1}"), by=speaker(node), now=START + 60 * SECOND)
    assert not again.changed


def test_a_disabled_node_that_flips_its_protocol_fills_no_history(
    enrolled_node: Callable[..., Enrolled], operator: Caller, stranger: Client
) -> None:
    enrolled = enrolled_node()
    control.disable(enrolled.node, reason="maintenance", by=operator, now=START)
    for number in range(40):
        headers = enrolled.headers | {VERSION_HEADER: str(1 + number % 2 * 8)}
        stranger.post(HEARTBEAT, "{}", "application/json", headers=headers)
    assert len(told("node.refused", "node.protocol_refused")) == LIMIT + RESERVED - 1  # the credential's first use
    assert sum((Node.objects.get().history_untold or {}).values()) == 40 - (LIMIT + RESERVED - 1)


def test_a_node_that_renews_and_renews_hears_429(enrolled_node: Callable[..., Enrolled]) -> None:
    enrolled = enrolled_node()
    node = enrolled.node
    allowance.spend(node.pk, LIMIT - 1, now=START)
    held = NodeCredential.objects.get(node=node)
    by = replace(speaker(node), credential_id=held.pk)
    credentials.first_use(by=by, now=START)
    with pytest.raises(Refused) as caught:
        credentials.renew(by=by, now=START)
    assert (caught.value.code, caught.value.retry_after) == (Code.THROTTLED, HOUR / LIMIT)


def test_what_others_do_to_a_node_is_not_counted(node: Node, operator: Caller) -> None:
    for number in range(20):
        control.disable(node, reason="off", by=operator, now=START + number * SECOND)
        control.enable(node, by=operator, now=START + number * SECOND)
    assert len(told("node.disabled", "node.enabled")) == 40
    assert allowance.wait(Node.objects.get(), now=START) is None


def test_the_chain_of_the_history_holds(node: Node) -> None:
    restarted(node, 50)
    holding.let_go(now=START + 9 * HOUR)
    assert audit.broken(audit.verify()) == []


def test_its_page_says_so_with_a_remedy(node: Node) -> None:
    restarted(node, 50)
    mara = browsing.an_operator()
    page = mara.get(f"/admin/nodes/node/{node.pk}/change/").content.decode()
    assert "Held back: it tells too much" in page
    assert "it is let go by itself" in page
    assert "1 held back" in mara.get("/admin/").content.decode()
    listed = mara.get("/admin/nodes/node/?flag=held_back").content.decode()
    assert node.display_name in listed


def test_the_page_of_one_that_is_not_held_back_does_not(node: Node) -> None:
    restarted(node, LIMIT)
    page = browsing.an_operator().get(f"/admin/nodes/node/{node.pk}/change/").content.decode()
    assert "Held back" not in page


def test_rest_and_metrics_say_so(node: Node, api: Client) -> None:
    restarted(node, 50)
    warnings = api.get(f"/api/v1/hardware/nodes/{node.pk}").json()["warnings"]
    assert "held_back" in [warning["code"] for warning in warnings]
    assert 'modelforge_nodes_flagged{flag="held_back"} 1.0' in api.get("/metrics").content.decode()
