"""One node by REST: all that is known of it, never a secret, and its telemetry made ready to draw."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from nodes import telemetry
from nodes.models import Heartbeat, Node
from tests.nodes.publishing import AFTER_THE_PACE, FAILED, facts, gpu, publish, sample, unknown, volume
from tests.nodes.test_api_nodes import heard

pytestmark = pytest.mark.django_db
URL = "/api/v1/hardware/nodes"
MakeNode = Callable[..., Node]


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    """A node that published facts and a sample, and was heard."""
    node = make_node(display_name="server01")
    now = datetime.now(UTC)
    odd = gpu(1, memory_bytes=unknown("error", 999))
    publish(node, facts([gpu(0), odd], volumes=[volume("state"), volume("artifacts")]), now)
    telemetry.keep(node.pk, sample(now), now=now)
    return heard(node, timedelta(seconds=5))


def read(client: Client, node: Node) -> dict[str, Any]:
    """The node as it is shown."""
    response = client.get(f"{URL}/{node.pk}")
    assert response.status_code == 200, response.content
    return dict(response.json())


def codes(shown: dict[str, Any]) -> list[str]:
    """Its warnings."""
    return [warning["code"] for warning in shown["warnings"]]


def test_a_node_says_of_itself_what_the_list_says_of_it(api: Client, node: Node) -> None:
    [listed] = api.get(URL).json()["results"]
    shown = read(api, node)
    assert {name: shown[name] for name in listed if "age" not in name} == {
        name: value for name, value in listed.items() if "age" not in name
    }


def test_everything_that_is_known_of_a_node_is_shown(api: Client, node: Node) -> None:
    shown = read(api, node)

    assert (shown["hostname"], shown["liveness"], shown["heartbeat"]["interval_seconds"]) == ("server01", "online", 15)
    assert shown["heartbeat"]["stale_at"] < shown["heartbeat"]["offline_at"]
    assert shown["facts"]["host"]["memory_limit_bytes"] == {"reason": "denied", "code": 13}
    assert shown["gpu_runtime"]["driver_version"] == {"value": "580.65"}
    assert [(a["key"], a["memory_bytes"]) for a in shown["accelerators"]] == [
        ("GPU-0000", 16 * 2**30),
        ("GPU-0001", None),
    ]
    assert shown["accelerators"][1]["facts"]["memory_bytes"] == {"reason": "error", "code": 999}
    assert [v["name"] for v in shown["volumes"]] == ["artifacts", "state"]
    assert shown["telemetry"]["data"]["host"]["load_1m"] == {"value": 1.5}
    assert codes(shown) == []


def test_a_gpu_that_vanished_is_shown_as_missing_with_a_warning(api: Client, node: Node) -> None:
    """Field case 46."""
    publish(node, facts([gpu(0)]), datetime.now(UTC) + AFTER_THE_PACE)
    shown = read(api, node)
    assert [a["key"] for a in shown["accelerators"] if a["missing_since"]] == ["GPU-0001"]
    assert codes(shown) == ["accelerator_missing"]


def test_a_runtime_that_fails_is_a_warning_beside_the_last_known_gpus(api: Client, node: Node) -> None:
    """Field case 47."""
    publish(node, facts([], runtime=FAILED), datetime.now(UTC) + AFTER_THE_PACE)
    shown = read(api, node)
    assert len(shown["accelerators"]) == 2
    assert all(a["missing_since"] is None for a in shown["accelerators"])
    assert "NVML 999" in shown["warnings"][0]["detail"]


@pytest.mark.parametrize(("skew", "warned"), [(59, []), (-61, ["clock_skew"]), (86400, ["clock_skew"])])
def test_a_clock_that_is_off_by_more_than_a_minute_is_a_warning(
    api: Client, node: Node, skew: float, warned: list[str]
) -> None:
    """Field case 21."""
    Heartbeat.objects.filter(node=node).update(clock_skew_seconds=skew)
    shown = read(api, node)
    assert (codes(shown), shown["heartbeat"]["clock_skew_seconds"]) == (warned, skew)


def test_unverified_tls_is_a_warning(api: Client, node: Node) -> None:
    """Field case 29."""
    publish(node, facts([gpu(0), gpu(1)], tls_verify=False), datetime.now(UTC) + AFTER_THE_PACE)
    assert codes(read(api, node)) == ["tls_unverified"]


def test_a_protocol_that_was_refused_is_a_warning_with_what_was_said(api: Client, node: Node) -> None:
    """Field case 25."""
    now = datetime.now(UTC)
    Node.objects.filter(pk=node.pk).update(
        protocol_refused="9", protocol_refused_at=now, refused_code="protocol_unsupported", refused_at=now
    )
    shown = read(api, node)
    assert (codes(shown), shown["protocol_refused"], shown["protocol_refused_said"]) == (
        ["protocol_refused"],
        True,
        "9",
    )


def test_the_etag_is_the_version(api: Client, node: Node) -> None:
    assert api.get(f"{URL}/{node.pk}")["ETag"] == '"1"'


def test_a_node_that_was_never_heard_is_shown_too(api: Client, make_node: MakeNode) -> None:
    shown = read(api, make_node())
    assert (shown["facts"], shown["gpu_runtime"], shown["telemetry"]) == (None, None, None)
    assert (shown["heartbeat"]["age_seconds"], shown["accelerators"], shown["warnings"]) == (None, [], [])


def test_a_retired_node_can_still_be_read(api: Client, make_node: MakeNode) -> None:
    """Field case 43."""
    assert read(api, make_node(retired_at=datetime.now(UTC)))["retired"] is True


@pytest.mark.parametrize("id", ["00000000-0000-0000-0000-000000000000", "no-uuid", "1"])
@pytest.mark.parametrize("part", ["", "/telemetry"])
def test_a_node_that_is_none_is_not_found(api: Client, id: str, part: str) -> None:
    response = api.get(f"{URL}/{id}{part}")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert response.json()["code"] == "not_found"


@pytest.mark.parametrize("others", [3, 60])
def test_a_node_costs_the_same_number_of_queries_in_any_fleet(
    api: Client, node: Node, make_node: MakeNode, others: int
) -> None:
    for _ in range(others):
        make_node()
    publish(node, facts([gpu(n) for n in range(others)]), datetime.now(UTC) + AFTER_THE_PACE)
    with CaptureQueriesContext(connection) as queries:
        assert len(read(api, node)["accelerators"]) >= others
    assert len(queries) == 4, [query["sql"] for query in queries]


def test_no_secret_or_its_digest_is_shown(api: Client, enrolled_node: Callable[..., Any]) -> None:
    from enrollment.models import EnrollmentToken, NodeCredential

    made = enrolled_node()
    text = json.dumps(read(api, made.node)) + api.get(URL).content.decode()
    kept = [*NodeCredential.objects.all(), *EnrollmentToken.objects.all()]
    for secret in (made.credential, made.token, *(x.digest for x in kept), *(x.handle for x in kept)):
        assert secret not in text


@pytest.mark.parametrize("part", ["", "/telemetry"])
def test_a_stranger_reads_nothing(stranger: Client, node: Node, part: str) -> None:
    assert stranger.get(f"{URL}/{node.pk}{part}").status_code == 401


def test_the_last_hour_is_drawn_unless_told(api: Client, node: Node) -> None:
    drawn = api.get(f"{URL}/{node.pk}/telemetry").json()
    [[at, value]] = drawn["host"]["cpu_percent"]
    assert (value, drawn["accelerators"]["GPU-0000"]["fan_percent"]) == (50.0, [[at, None]])
    assert abs(at - datetime.now(UTC).timestamp()) < 60
    assert drawn["step_seconds"] == 12.0


def test_a_span_and_a_number_of_points_may_be_told(api: Client, node: Node) -> None:
    query: dict[str, Any] = {"since": "2026-03-01T00:00:00Z", "until": "2026-03-02T00:00:00Z", "points": 24}
    drawn = api.get(f"{URL}/{node.pk}/telemetry", query).json()
    assert (drawn["step_seconds"], drawn["host"]) == (3600.0, {})


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"points": "1"}, "points"),
        ({"points": "1001"}, "points"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-13-01T00:00:00Z"}, "until"),
        ({"until": "0001-01-01T00:00:00Z"}, "until"),
        ({"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "since"),
        ({"since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "since"),
        ({"sinse": "x"}, "sinse"),
    ],
    ids=str,
)
def test_a_bad_span_is_refused_by_name(api: Client, node: Node, query: dict[str, str], field: str) -> None:
    response = api.get(f"{URL}/{node.pk}/telemetry", query)
    assert (response.status_code, [e["field"] for e in response.json()["errors"]]) == (400, [field])


def test_a_change_whose_body_comes_in_chunks_is_refused_rather_than_half_heard(api: Client, node: Node) -> None:
    response = api.post(
        f"/api/v1/admin/nodes/{node.pk}/disable",
        {"reason": "fan"},
        content_type="application/json",
        headers={"Transfer-Encoding": "chunked"},
    )
    assert (response.status_code, response.json()["code"]) == (411, "length_required")
    node.refresh_from_db()
    assert node.enabled


def test_a_change_nested_too_deep_is_malformed(api: Client, node: Node) -> None:
    body = '{"reason":' + "[" * 5000 + "]" * 5000 + "}"
    response = api.post(f"/api/v1/admin/nodes/{node.pk}/disable", body, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (400, "malformed")
