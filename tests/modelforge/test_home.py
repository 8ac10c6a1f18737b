"""The home page: how the fleet is, also between two sweeps, what needs attention, and how many were online."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from agent.wire import Goodbye
from modelforge.dashboard import changes_online, thinned
from nodes import heartbeats
from nodes.event_types import EventType
from nodes.models import ControlPlane, Node
from tests.nodes import browsing
from tests.nodes.browsing import instant, words
from tests.nodes.hearing import Agent, speaker
from tests.nodes.publishing import facts, gpu, publish

pytestmark = pytest.mark.django_db

A, B = UUID(int=1), UUID(int=2)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Told = list[tuple[UUID | None, str, datetime, dict[str, Any]]]


@pytest.fixture
def mara() -> Client:
    """An operator's browser."""
    return browsing.an_operator()


def home(client: Client) -> str:
    """What the home page says."""
    return words(client.get("/admin/"))


def test_an_empty_fleet_offers_to_enroll(mara: Client) -> None:
    assert "No node yet: enroll one" in home(mara)


def test_nodes_are_counted_by_what_they_are_now(mara: Client, make_node: Callable[..., Node]) -> None:
    now = instant()
    for silent_for in (1, 1, 50, 500):
        Agent(make_node()).beat(now - timedelta(seconds=silent_for))
    make_node(retired_at=now)
    said = home(mara)
    assert "2 of 4" in said
    assert "2 online 1 stale 1 offline" in said


def test_gpus_and_their_memory_are_summed(mara: Client, make_node: Callable[..., Node]) -> None:
    now = instant()
    for _ in range(2):
        node = make_node()
        Agent(node).beat(now)
        publish(node, facts([gpu(0), gpu(1)]), now)
    response = mara.get("/admin/")
    assert (response.context["gpus"], response.context["vram"]) == (4, "64 GiB")


def test_what_needs_attention_stands_there_with_its_remedy(mara: Client, make_node: Callable[..., Node]) -> None:
    make_node(display_name="odd-one", protocol_refused="9", protocol_refused_at=instant(), refused_code="x")
    said = home(mara)
    assert "odd-one" in said
    assert "Run an agent of this control plane's release" in said


def test_a_conflict_needs_attention_though_the_present_boot_said_goodbye(
    mara: Client, make_node: Callable[..., Node]
) -> None:
    node, now = make_node(display_name="twin"), instant()
    agent = Agent(node)
    agent.beat(now)
    heartbeats.farewell(Goodbye(boot_id=agent.boot_id, reason="SIGTERM"), by=speaker(node), now=now)
    assert mara.get("/admin/").context["counts"]["attention"] == 0
    Node.objects.update(identity_conflict_at=now, identity_conflict={"speaking_from": "192.0.2.1"})
    said = home(mara)
    assert "192.0.2.1 said goodbye" in said
    assert "clear the conflict here: whichever agent speaks next goes on." in said


def test_a_disabled_or_retired_node_needs_none(mara: Client, make_node: Callable[..., Node]) -> None:
    flagged = {"identity_conflict_at": instant(), "identity_conflict": {}}
    make_node(enabled=False, **flagged)
    make_node(retired_at=instant(), **flagged)
    assert mara.get("/admin/").context["counts"]["attention"] == 0


def test_the_count_and_the_list_of_attention_agree(mara: Client, make_node: Callable[..., Node]) -> None:
    for number in range(15):
        make_node(display_name=f"n{number}", identity_conflict_at=instant(), identity_conflict={})
    context = mara.get("/admin/").context
    assert context["counts"]["attention"] == 15
    assert len(context["attention"]) + context["attention_more"] == 15


@pytest.mark.parametrize(("ago", "word"), [(3, "healthy"), (120, "sweep is late"), (None, "no sweep yet")])
def test_the_control_planes_own_health_is_told(ago: int | None, word: str, mara: Client) -> None:
    """Field case 81."""
    if ago is not None:
        ControlPlane.objects.create(id=1, swept_at=instant() - timedelta(seconds=ago))
    assert word in home(mara)


def at(minutes: int) -> datetime:
    """So many minutes past noon."""
    return NOON + timedelta(minutes=minutes)


def test_an_outage_is_one_down_and_one_up() -> None:
    told: Told = [
        (A, EventType.NODE_STALE, at(1), {}),
        (A, EventType.NODE_OFFLINE, at(2), {}),
        (A, EventType.NODE_RETURNED, at(9), {"was": "offline"}),
    ]
    assert changes_online(told) == [(at(1), -1), (at(9), 1)]


def test_what_began_before_the_picture_is_known_from_what_it_became() -> None:
    told: Told = [
        (A, EventType.NODE_RETURNED, at(1), {"was": "stale"}),
        (B, EventType.NODE_STOPPED, at(2), {}),
        (B, EventType.NODE_RETURNED, at(3), {"was": "offline"}),
    ]
    assert changes_online(told) == [(at(1), 1), (at(2), -1), (at(3), 1)]


def test_an_offline_after_a_stale_that_was_not_read_changes_nothing() -> None:
    assert changes_online([(A, EventType.NODE_OFFLINE, at(1), {})]) == []


def test_retiring_a_node_that_is_online_takes_it_away() -> None:
    told: Told = [(A, EventType.NODE_ONLINE, at(1), {}), (A, EventType.NODE_RETIRED, at(2), {})]
    assert changes_online(told) == [(at(1), 1), (at(2), -1)]


def test_a_crowded_picture_is_thinned_and_keeps_its_dips() -> None:
    points: list[tuple[datetime, float | None]] = [(NOON + timedelta(seconds=second), 9.0) for second in range(10_000)]
    points[4321] = (points[4321][0], 2.0)
    kept = thinned(points)
    assert len(kept) <= 401
    assert min(value for _, value in kept if value is not None) == 2.0
    assert kept[-1] == points[-1]
