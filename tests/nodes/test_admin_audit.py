"""The audit list: newest first, filtered, escaped, exported, and read-only."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import transaction
from django.test import Client

from nodes.audit import record
from nodes.callers import SYSTEM, Caller
from nodes.event_types import EventType
from nodes.models import Node
from tests.nodes import browsing
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db

LIST = "/admin/nodes/auditevent/"


@pytest.fixture
def audrey() -> Client:
    """An auditor's browser."""
    return browsing.an_auditor()


@pytest.fixture
def told(make_node: Callable[..., Node], operator: Caller) -> Node:
    """Three events about one node, and one about another."""
    node, other = make_node(display_name="server01"), make_node(display_name="server02")
    with transaction.atomic():
        for day, kind, about in ((1, EventType.NODE_ENROLLED, node), (2, EventType.NODE_OFFLINE, node)):
            record(kind, by=SYSTEM, about=about, at=datetime(2026, 3, day, 12, tzinfo=UTC), hostname="h1")
        record(EventType.NODE_ENROLLED, by=SYSTEM, about=other, at=datetime(2026, 3, 3, 12, tzinfo=UTC))
        said = {"reason": "<script>alert(1)</script>", "seconds": 90}
        record(EventType.NODE_DISABLED, by=operator, about=node, at=datetime(2026, 3, 4, 12, tzinfo=UTC), **said)
    return node


def positions(client: Client, query: str = "") -> list[int]:
    """The events that the list shows."""
    return [event.position for event in client.get(LIST + query).context["cl"].result_list]


def test_the_newest_comes_first(audrey: Client, told: Node) -> None:
    assert positions(audrey) == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?type=node.enrolled", [3, 1]),
        ("?actor=system", [3, 2, 1]),
        ("?node=server02", [3]),
        ("?since=2026-03-03", [4, 3]),
        ("?until=2026-03-02", [2, 1]),
        ("?since=2026-03-02&until=2026-03-03", [3, 2]),
        ("?q=server02", [3]),
        ("?q=192.0.2.1", [4]),
    ],
)
def test_it_is_filtered_and_searched(query: str, found: list[int], audrey: Client, told: Node) -> None:
    assert positions(audrey, query) == found


def test_it_is_filtered_by_a_nodes_id(audrey: Client, told: Node) -> None:
    assert positions(audrey, f"?node={told.pk}") == [4, 2, 1]


def test_an_event_shows_its_details_and_its_place_in_the_chain(audrey: Client, told: Node) -> None:
    response = audrey.get(f"{LIST}4/change/")
    said, event = words(response), response.context["event"]
    assert '"seconds": 90' in said
    assert event.hash in said
    assert event.previous_hash in said
    assert "<script>alert" not in response.content.decode()


@pytest.mark.parametrize("key", ["99", "0", "x", "9" * 30])
def test_an_unknown_event_is_not_found(key: str, audrey: Client, told: Node) -> None:
    assert audrey.get(f"{LIST}{key}/change/").status_code == 404


def test_what_is_exported_is_what_the_filters_left(audrey: Client, told: Node) -> None:
    query = f"?node={told.pk}&since=2026-03-02&type=node.disabled"
    exports = dict(audrey.get(LIST + query).context["exports"])
    lines = b"".join(audrey.get(exports["NDJSON"])).splitlines()
    assert len(lines) == 1
    table = b"".join(audrey.get(exports["CSV"])).splitlines()
    assert len(table) == 2


@pytest.mark.parametrize("end", ["since", "until"])
def test_a_day_that_is_none_is_told_and_nothing_is_listed_nor_exported(end: str, audrey: Client) -> None:
    response = audrey.get(f"/admin/nodes/auditevent/?{end}=2026-02-31")
    said = words(response)
    assert f"“{end}”: “2026-02-31” is no date; write YYYY-MM-DD." in said
    assert response.context["exports"] == []
