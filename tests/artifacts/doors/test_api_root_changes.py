"""Storage roots are revised, approved again and retired by REST."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from artifacts.models import StorageRoot
from nodes.models import Node
from tests.artifacts.doors.asking import send
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, TIB, a_root

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


def faults(response: Any) -> list[str]:
    """The fields at fault."""
    return [error["field"] for error in response.json()["errors"]]


def listed(client: Client, **query: Any) -> list[str]:
    """The paths on the page that a query asks for."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [root["container_path"] for root in response.json()["results"]]


def test_a_revision_changes_what_it_names(api: Client, root: StorageRoot) -> None:
    response = send(api, f"{URL}/{root.pk}", {"reserve_bytes": 9 * GIB, "ceiling_bytes": TIB}, "patch", if_match='"1"')
    shown = response.json()
    assert (response.status_code, response["ETag"]) == (200, '"2"')
    assert (shown["reserve_bytes"], shown["reserve_percent"], shown["ceiling_bytes"]) == (9 * GIB, None, TIB)


@pytest.mark.parametrize(("tag", "status"), [(None, 428), ('"7"', 412), ("*", 200), ('"1"', 200)])
def test_a_revision_needs_the_version_that_was_read(
    api: Client, root: StorageRoot, tag: str | None, status: int
) -> None:
    headers = {"if_match": tag} if tag else {}
    response = send(api, f"{URL}/{root.pk}", {"purpose": "lab"}, "patch", **headers)
    assert response.status_code == status
    assert status == 200 or "storage root" in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"container_path": "/data/artifacts/y"}, "container_path"),
        ({"reserve_bytes": "much"}, "reserve_bytes"),
        ({"host_path": "x"}, "host_path"),
        ({"purpose": "a\ud800"}, "purpose"),
    ],
    ids=["container-path", "words", "relative", "surrogate"],
)
def test_a_revision_s_fault_is_named(api: Client, root: StorageRoot, body: dict[str, Any], field: str) -> None:
    response = send(api, f"{URL}/{root.pk}", body, "patch", if_match='"1"')
    assert (response.status_code, faults(response)) == (400, [field])


def test_a_revision_that_is_no_object_is_refused(api: Client, root: StorageRoot) -> None:
    assert send(api, f"{URL}/{root.pk}", "[1]", "patch", if_match='"1"').status_code == 400


def test_approving_again_lets_the_agent_take_the_folder_as_it_is(api: Client, node: Node) -> None:
    root = a_root(node, datetime.now(UTC), state="unverified", fault="device_changed")
    shown = send(api, f"{URL}/{root.pk}/approve", {"reason": "new disk"}).json()
    assert (shown["state"], shown["fault"], shown["approval_waits"]) == ("pending", None, True)


def test_a_retired_root_is_shown_and_no_longer_listed(api: Client, root: StorageRoot) -> None:
    response = send(api, f"{URL}/{root.pk}/retire", {"reason": "disk sold"})
    assert (response.status_code, response.json()["state"]) == (200, "retired")
    assert listed(api) == []
    assert send(api, f"{URL}/{root.pk}/retire", {"reason": "again"}).json()["code"] == "state_conflict"


@pytest.mark.parametrize("verb", ["approve", "retire"])
@pytest.mark.parametrize("body", [{}, {"reason": " "}, {"reason": "x" * 256}], ids=["none", "blank", "long"])
def test_a_missing_reason_is_refused_by_name(api: Client, root: StorageRoot, verb: str, body: dict[str, str]) -> None:
    response = send(api, f"{URL}/{root.pk}/{verb}", body)
    assert (response.status_code, faults(response)) == (400, ["reason"])
