"""The node list by REST: pages, filters, order, liveness at the moment of the answer, and what it costs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from nodes.fleet import listed
from nodes.liveness import Liveness, deadlines
from nodes.models import CredentialState, Heartbeat, Node
from tests.nodes.publishing import AFTER_THE_PACE, FAILED, READY, facts, gpu, publish

pytestmark = pytest.mark.django_db
URL = "/api/v1/hardware/nodes"
MakeNode = Callable[..., Node]


def names(client: Client, **query: Any) -> list[str]:
    """The names on the page that the query asks for."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [node["display_name"] for node in response.json()["results"]]


def fault(client: Client, **query: Any) -> tuple[int, str, list[str]]:
    """The refusal of a query."""
    response = client.get(URL, query)
    body = response.json()
    return response.status_code, body["code"], [error["field"] for error in body["errors"]]


def heard(node: Node, ago: timedelta, *, stored: Liveness = Liveness.ONLINE) -> Node:
    """Heard so long ago, told 15 seconds, and not looked at by a sweep since."""
    at = datetime.now(UTC) - ago
    limits = deadlines(at, timedelta(seconds=15))
    Heartbeat.objects.filter(node=node).update(
        liveness=stored,
        last_heard_at=at,
        boot_id=uuid4(),
        sequence=1,
        stale_at=limits.stale_at,
        offline_at=limits.offline_at,
        interval_seconds=15,
        clock_skew_seconds=0,
    )
    return node


def test_a_node_is_shown_with_its_axes_apart(api: Client, make_node: MakeNode) -> None:
    node = heard(make_node(display_name="tower", role="lab", labels={"site": "office"}, enabled=False), timedelta(0))

    [shown] = api.get(URL).json()["results"]
    assert (shown["id"], shown["display_name"], shown["labels"]) == (str(node.pk), "tower", {"site": "office"})
    assert (shown["liveness"], shown["enabled"], shown["retired"]) == ("online", False, False)
    assert (shown["credential_state"], shown["rotation_pending"]) == ("active", False)
    assert 0 <= shown["heartbeat_age_seconds"] < 10


def test_accelerators_are_summed_over_what_is_present(api: Client, make_node: MakeNode) -> None:
    node = make_node()
    publish(node, facts([gpu(0), gpu(1), gpu(2)]), datetime.now(UTC))
    publish(node, facts([gpu(0), gpu(1)]), datetime.now(UTC) + AFTER_THE_PACE)

    [shown] = api.get(URL).json()["results"]
    assert shown["accelerator_summary"] == {
        "present": 2,
        "missing": 1,
        "memory_bytes": 2 * 16 * 2**30,
        "models": {"NVIDIA GeForce RTX 4080": 2},
    }
    assert (shown["gpu_runtime_state"], shown["tls_verify"]) == ("ready", True)


def test_a_node_that_published_nothing_has_nulls_and_no_zeros(api: Client, make_node: MakeNode) -> None:
    """Field case 44."""
    make_node()
    [shown] = api.get(URL).json()["results"]
    assert (shown["liveness"], shown["last_heard_at"], shown["heartbeat_age_seconds"]) == ("offline", None, None)
    assert (shown["gpu_runtime_state"], shown["tls_verify"]) == (None, None)
    assert shown["accelerator_summary"]["memory_bytes"] is None


@pytest.mark.parametrize(
    ("ago", "liveness"),
    [(0, "online"), (40, "online"), (50, "stale"), (100, "offline")],
)
def test_liveness_is_right_between_two_sweeps(api: Client, make_node: MakeNode, ago: int, liveness: str) -> None:
    """Field case 81: the stored state says online all along."""
    heard(make_node(display_name="here"), timedelta(seconds=ago))

    [shown] = api.get(URL).json()["results"]
    assert shown["liveness"] == liveness
    assert {state: names(api, liveness=state) for state in ("online", "stale", "offline")} == {
        "online": [],
        "stale": [],
        "offline": [],
        liveness: ["here"],
    }


@pytest.mark.parametrize("stored", list(Liveness))
@pytest.mark.parametrize("ago", [0, 44, 46, 89, 91, 10_000])
def test_the_database_decides_liveness_as_the_rule_does(
    api: Client, make_node: MakeNode, stored: Liveness, ago: int
) -> None:
    node = heard(make_node(), timedelta(seconds=ago), stored=stored)
    heart = Heartbeat.objects.get(node=node)
    [shown] = api.get(URL).json()["results"]
    assert shown["liveness"] == heart.seen_at(datetime.now(UTC))


@pytest.fixture
def fleet(make_node: MakeNode) -> None:
    """Four nodes that differ in everything."""
    now = datetime.now(UTC)
    a = make_node(display_name="alpha", role="inference", labels={"site": "office", "7": "x"}, lab_eligible=True)
    make_node(display_name="bravo", hostname="zulu", labels={"site": "dc:1"}, production_eligible=True, enabled=False)
    c = make_node(display_name="charlie", credential_state=CredentialState.REVOKED, address="192.0.2.77")
    make_node(display_name="delta", retired_at=now, role="inference")
    publish(a, facts([gpu(0)], runtime=READY, hostname="alpha"), now)
    publish(c, facts([], runtime=FAILED, hostname="charlie"), now)
    heard(a, timedelta(seconds=10))
    heard(c, timedelta(seconds=60))


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["alpha", "bravo", "charlie"]),
        ({"retired": "true"}, ["delta"]),
        ({"retired": "false"}, ["alpha", "bravo", "charlie"]),
        ({"enabled": "false"}, ["bravo"]),
        ({"role": "inference"}, ["alpha"]),
        ({"label": "site:office"}, ["alpha"]),
        ({"label": "site:dc:1"}, ["bravo"]),
        ({"label": ["site:office", "7:x"]}, ["alpha"]),
        ({"label": ["site:office", "7:y"]}, []),
        ({"label": "nowhere:x"}, []),
        ({"eligibility": "lab"}, ["alpha"]),
        ({"eligibility": "production"}, []),
        ({"credential_state": "revoked"}, ["charlie"]),
        ({"q": "ALPH"}, ["alpha"]),
        ({"q": "zulu"}, ["bravo"]),
        ({"q": "192.0.2.77"}, ["charlie"]),
        ({"q": "rtx 4080"}, ["alpha"]),
        ({"q": "GPU-0000"}, ["alpha"]),
        ({"q": "%"}, []),
        ({"ordering": "-display_name"}, ["charlie", "bravo", "alpha"]),
        ({"ordering": "-last_heard_at"}, ["alpha", "charlie", "bravo"]),
        ({"ordering": "last_heard_at"}, ["charlie", "alpha", "bravo"]),
        ({"ordering": "liveness"}, ["bravo", "alpha", "charlie"]),
    ],
    ids=str,
)
def test_a_filter_narrows_and_an_order_orders(api: Client, query: dict[str, Any], found: list[str]) -> None:
    assert names(api, **query) == found


def test_a_node_is_found_by_its_id(api: Client, make_node: MakeNode) -> None:
    make_node(display_name="other")
    node = make_node(display_name="wanted")
    assert names(api, q=str(node.pk)) == ["wanted"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"liveness": "alive"}, "liveness"),
        ({"enabled": "maybe"}, "enabled"),
        ({"retired": "1"}, "retired"),
        ({"label": "site"}, "label"),
        ({"label": ":x"}, "label"),
        ({"eligibility": "all"}, "eligibility"),
        ({"credential_state": "lost"}, "credential_state"),
        ({"ordering": "facts"}, "ordering"),
        ({"page": "0"}, "page"),
        ({"page": "x"}, "page"),
        ({"page": "2"}, "page"),
        ({"page_size": "0"}, "page_size"),
        ({"page_size": "201"}, "page_size"),
        ({"livenes": "online"}, "livenes"),
        ({"format": "api"}, "format"),
        ({"q": "a\x00b"}, "q"),
        ({"label": 'a"b:c'}, "label"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_name(api: Client, query: dict[str, Any], field: str) -> None:
    status, code, fields = fault(api, **query)
    assert (status, code) == (400, "invalid")
    assert [name.partition("[")[0].partition(".")[0] for name in fields] == [field]


def test_the_list_comes_in_pages(api: Client, make_node: MakeNode) -> None:
    for _ in range(5):
        make_node()
    first = api.get(URL, {"page_size": 2}).json()
    assert (first["count"], len(first["results"]), first["previous"]) == (5, 2, None)
    last = api.get(URL, {"page_size": 2, "page": 3}).json()
    assert (len(last["results"]), last["next"]) == (1, None)
    followed = api.get(first["next"]).json()
    assert [n["display_name"] for n in followed["results"]] == ["server-03", "server-04"]


def test_fifty_stand_on_a_page_unless_told(api: Client, make_node: MakeNode) -> None:
    for _ in range(51):
        make_node()
    assert len(names(api)) == 50


@pytest.mark.parametrize("count", [3, 60])
def test_the_list_costs_the_same_number_of_queries_for_three_and_for_sixty(
    api: Client, make_node: MakeNode, count: int
) -> None:
    for _ in range(count):
        heard(make_node(), timedelta(seconds=5))
    for node in Node.objects.all()[:20]:
        publish(node, facts([gpu(n) for n in range(4)]), datetime.now(UTC))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(names(api, page_size=100)) == count
    assert len(queries) == 3, [query["sql"] for query in queries]


def test_the_list_leaves_the_large_facts_in_the_database(make_node: MakeNode) -> None:
    publish(make_node(), facts([gpu(0)]), datetime.now(UTC))
    [node] = listed(datetime.now(UTC))
    assert "facts" in node.get_deferred_fields()
    assert {"facts", "uuid"} <= node.accelerators.all()[0].get_deferred_fields()


def test_a_stranger_reads_nothing(stranger: Client, make_node: MakeNode) -> None:
    make_node()
    response = stranger.get(URL)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_the_list_is_only_read(api: Client, method: str) -> None:
    response = getattr(api, method)(URL)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
