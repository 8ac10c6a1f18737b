"""Storage roots by REST: registered once, listed with their room and fault."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from artifacts.models import StorageRoot
from nodes.callers import AUDITORS, OPERATORS
from nodes.models import Node
from tests.artifacts.doors.asking import send
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, TIB, a_job, a_root, an_artifact, progressed
from tests.nodes.browsing import at_the_pages, person
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db
URL = "/api/v1/admin/storage-roots"


@pytest.fixture
def node() -> Node:
    """A server whose agent told its artifact volume."""
    return a_server()


@pytest.fixture
def root(node: Node) -> StorageRoot:
    """A verified root."""
    return a_root(node, datetime.now(UTC))


def register(client: Client, node: Node, *, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """The response to a registration."""
    body = {
        "node_id": str(node.pk),
        "host_path": "/mnt/cache/models",
        "container_path": "/data/artifacts/models",
    }
    return client.post(URL, body | fields, content_type="application/json", headers=headers or {})


def faults(response: Any) -> list[str]:
    """The fields at fault."""
    return [error["field"] for error in response.json()["errors"]]


def listed(client: Client, **query: Any) -> list[str]:
    """The paths on the page that a query asks for."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [root["container_path"] for root in response.json()["results"]]


def test_a_folder_is_registered_and_waits_for_its_proof(api: Client, node: Node) -> None:
    response = register(api, node, reserve_bytes=50 * GIB, ceiling_bytes=TIB)

    shown = response.json()
    assert (response.status_code, shown["state"], shown["fault"], shown["approval_waits"]) == (
        201,
        "pending",
        None,
        True,
    )
    assert (shown["reserve_bytes"], shown["reserve_percent"], shown["ceiling_bytes"]) == (50 * GIB, None, TIB)
    assert told() == ["storage_root.registered"]


def test_what_was_never_measured_is_null_and_not_zero(api: Client, node: Node) -> None:
    shown = register(api, node).json()
    capacity = shown["capacity"]
    assert (capacity["free_bytes"], capacity["room_bytes"], capacity["reserve_bytes"], capacity["at"]) == (None,) * 4
    assert (shown["proof"]["proven_at"], shown["proof"]["looked_at"]) == (None, None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"container_path": "/"}, "container_path"),
        ({"container_path": "/data/artifacts/../x"}, "container_path"),
        ({"container_path": "/elsewhere/models"}, "container_path"),
        ({"host_path": "/mnt/user/models"}, "host_path"),
        ({"host_path": ""}, "host_path"),
        ({"node_id": str(uuid4())}, "node_id"),
        ({"node_id": "server01"}, "node_id"),
        ({"reserve_bytes": -1}, "reserve_bytes"),
        ({"reserve_percent": 120}, "reserve_percent"),
        ({"ceiling_bytes": 0}, "ceiling_bytes"),
        ({"path": "/x"}, "path"),
    ],
    ids=["slash", "dots", "outside", "fuse", "no-host", "no-node", "no-uuid", "bytes", "percent", "ceiling", "unknown"],
)
def test_a_registration_s_fault_is_named(api: Client, node: Node, fields: dict[str, Any], field: str) -> None:
    response = register(api, node, **fields)
    assert (response.status_code, faults(response)) == (400, [field])
    assert not StorageRoot.objects.exists()


def test_the_same_key_registers_once(api: Client, node: Node) -> None:
    first = register(api, node, headers={"Idempotency-Key": "a"})
    again = register(api, node, headers={"Idempotency-Key": "a"})
    assert (again.status_code, again["Idempotency-Replayed"], again.json()) == (201, "true", first.json())
    assert StorageRoot.objects.count() == 1


def test_without_a_key_the_second_registration_overlaps_the_first(api: Client, node: Node) -> None:
    register(api, node)
    assert register(api, node).status_code == 400


def test_a_root_tells_its_room(api: Client, root: StorageRoot) -> None:
    now = datetime.now(UTC)
    an_artifact(root, now, bytes=7 * GIB)
    a_job(root, now, state="running", **progressed(now, 0.25, 40 * GIB))

    response = api.get(f"{URL}/{root.pk}")
    shown = response.json()
    reserve = shown["capacity"]["reserve_bytes"]
    assert response["ETag"] == '"1"'
    assert shown["capacity"]["artifact_bytes"] == 7 * GIB
    assert shown["capacity"]["reserved_bytes"] == 30 * GIB
    assert shown["capacity"]["room_bytes"] == TIB - reserve - 30 * GIB
    assert (shown["artifacts"], shown["active_jobs"]) == (1, 1)


def test_a_fault_comes_with_its_remedy(api: Client, node: Node) -> None:
    """Field case 59."""
    root = a_root(
        node, datetime.now(UTC), state="unverified", fault="marker_missing", fault_detail="the folder is empty"
    )
    fault = api.get(f"{URL}/{root.pk}").json()["fault"]
    assert (fault["code"], fault["detail"]) == ("marker_missing", "the folder is empty")
    assert "mount it" in fault["remedy"]


@pytest.fixture
def several(node: Node) -> dict[str, str]:
    """Roots that differ in everything; their nodes by name."""
    now = datetime.now(UTC)
    other = a_server("tower")
    a_root(node, now, "alpha")
    a_root(node, now, "bravo", state="unverified", fault="fuse")
    a_root(node, now, "gone", state="retired", retired_at=now)
    a_root(other, now, "delta", host_path="/mnt/disk7/x")
    return {"server01": str(node.pk), "tower": str(other.pk)}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["alpha", "bravo", "delta"]),
        ({"node": "tower"}, ["delta"]),
        ({"state": "unverified"}, ["bravo"]),
        ({"state": "retired"}, ["gone"]),
        ({"q": "ALPH"}, ["alpha"]),
        ({"q": "disk7"}, ["delta"]),
        ({"q": "tower"}, ["delta"]),
        ({"q": "%"}, []),
    ],
    ids=str,
)
def test_a_filter_narrows(api: Client, several: dict[str, str], query: dict[str, str], found: list[str]) -> None:
    wanted = {name: several.get(value, value) if name == "node" else value for name, value in query.items()}
    assert listed(api, **wanted) == [f"/data/artifacts/{name}" for name in found]


@pytest.mark.parametrize(
    ("query", "field"),
    [({"state": "good"}, "state"), ({"node": "server01"}, "node"), ({"nod": "x"}, "nod"), ({"page": "0"}, "page")],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_name(api: Client, query: dict[str, str], field: str) -> None:
    response = api.get(URL, query)
    assert (response.status_code, faults(response)) == (400, [field])


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_costs_the_same_for_two_and_for_twenty(api: Client, node: Node, count: int) -> None:
    now = datetime.now(UTC)
    for number in range(count):
        root = a_root(node, now, f"r{number}", device_id=f"8:{number}")
        an_artifact(root, now)
        a_job(root, now)
    with CaptureQueriesContext(connection) as queries:
        assert len(listed(api)) == count
    assert len(queries) == 2, [query["sql"] for query in queries]


@pytest.mark.parametrize("verb", ["", "/approve", "/retire"])
def test_what_is_not_there_is_not_found(api: Client, verb: str) -> None:
    path = f"{URL}/{uuid4()}{verb}"
    response = send(api, path, {"reason": "x"}) if verb else api.get(path)
    assert response.status_code == 404


@pytest.mark.parametrize(
    ("group", "read", "act"), [(OPERATORS, 200, 201), (AUDITORS, 200, 403), (None, 403, 403)], ids=str
)
def test_auditors_read_and_operators_act(node: Node, group: str | None, read: int, act: int) -> None:
    client = at_the_pages(person("ada", group))
    assert client.get(URL).status_code == read
    assert register(client, node).status_code == act


def test_a_stranger_reads_and_does_nothing(stranger: Client, node: Node, root: StorageRoot) -> None:
    assert stranger.get(URL).status_code == 401
    assert register(stranger, node).status_code == 401
    assert send(stranger, f"{URL}/{root.pk}/retire", {"reason": "x"}).status_code == 401
