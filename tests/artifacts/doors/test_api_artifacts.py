"""Artifacts by REST: what lies where, and the orders that verify and remove it."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent import wire
from artifacts.models import Job, StorageRoot
from nodes.callers import AUDITORS, OPERATORS
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import COMMIT, a_root, an_artifact
from tests.nodes.browsing import at_the_pages, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/artifacts"
ADMIN = "/api/v1/admin/artifacts"


def order(client: Client, artifact: Any, verb: str, body: Any = None, **headers: str) -> Any:
    """The response to a verb."""
    return client.post(f"{ADMIN}/{artifact.pk}/{verb}", body or {}, content_type="application/json", headers=headers)


def repos(client: Client, **query: Any) -> list[str]:
    """The repositories on the page that a query asks for."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [artifact["repo_id"] for artifact in response.json()["results"]]


def test_an_artifact_says_where_it_lies_on_both_sides(api: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    shown = api.get(f"{URL}/{artifact.pk}").json()
    assert shown["path"] == f"/data/artifacts/models/models/org/model/{COMMIT}"
    assert shown["host_path"] == f"/mnt/cache/appdata/agent/artifacts/models/models/org/model/{COMMIT}"
    assert (shown["state"], shown["commit"], shown["node"]) == ("published", COMMIT, "server01")


def test_a_damaged_one_names_its_files(api: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now, state="damaged", damaged=["a.safetensors"])
    assert api.get(f"{URL}/{artifact.pk}").json()["damaged"] == ["a.safetensors"]


@pytest.fixture
def several(root: StorageRoot, now: datetime) -> dict[str, str]:
    """Artifacts that differ in everything."""
    other = a_root(a_server("tower"), now)
    an_artifact(root, now, repo_id="org/alpha")
    an_artifact(root, now, repo_id="org/bravo", commit="ff" * 20, state="damaged")
    an_artifact(root, now, repo_id="org/gone", state="removed", removed_at=now)
    an_artifact(other, now, repo_id="org/delta", revision="v2")
    return {"server01": str(root.node_id), "other": str(other.pk)}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["alpha", "bravo", "delta"]),
        ({"node": "server01"}, ["alpha", "bravo"]),
        ({"root": "other"}, ["delta"]),
        ({"repo_id": "org/alpha"}, ["alpha"]),
        ({"commit": "ffff"}, ["bravo"]),
        ({"commit": COMMIT}, ["alpha", "delta"]),
        ({"state": "damaged"}, ["bravo"]),
        ({"state": "removed"}, ["gone"]),
        ({"q": "ALPH"}, ["alpha"]),
        ({"q": "v2"}, ["delta"]),
    ],
    ids=str,
)
def test_a_filter_narrows(api: Client, several: dict[str, str], query: dict[str, str], found: list[str]) -> None:
    wanted = {name: several.get(value, value) for name, value in query.items()}
    assert repos(api, **wanted) == [f"org/{name}" for name in found]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "whole"}, "state"),
        ({"commit": "xyz1"}, "commit"),
        ({"commit": "ab"}, "commit"),
        ({"rot": "x"}, "rot"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_name(api: Client, query: dict[str, str], field: str) -> None:
    response = api.get(URL, query)
    assert (response.status_code, [error["field"] for error in response.json()["errors"]]) == (400, [field])


@pytest.mark.parametrize("count", [2, 30])
def test_the_list_costs_the_same_for_two_and_for_thirty(
    api: Client, root: StorageRoot, now: datetime, count: int
) -> None:
    for number in range(count):
        an_artifact(root, now, repo_id=f"org/m{number}")
    with CaptureQueriesContext(connection) as queries:
        assert len(repos(api)) == count
    assert len(queries) == 2, [query["sql"] for query in queries]


@pytest.mark.parametrize(("verb", "kind"), [("verify", wire.VERIFY), ("remove", wire.REMOVE)])
def test_a_verb_orders_a_job_and_the_second_joins_it(
    api: Client, root: StorageRoot, now: datetime, verb: str, kind: str
) -> None:
    artifact = an_artifact(root, now)
    first, again = (order(api, artifact, verb, {"reason": "old"}) for _ in range(2))
    assert (first.status_code, first.json()["type"], first.json()["joined"]) == (201, kind, False)
    assert (again.status_code, again.json()["id"], again.json()["joined"]) == (200, first.json()["id"], True)


def test_the_same_key_orders_once(api: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    for _ in range(2):
        response = order(api, artifact, "verify", **{"Idempotency-Key": "a"})
        assert response.status_code == 201
    assert Job.objects.count() == 1


def test_removing_asks_why_and_verifying_does_not(api: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    refused = order(api, artifact, "remove")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "reason")
    assert order(api, artifact, "verify").status_code == 201


def test_what_was_removed_cannot_be_verified(api: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now, state="removed", removed_at=now)
    response = order(api, artifact, "verify")
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")


def test_what_is_not_there_is_not_found(api: Client) -> None:
    assert api.get(f"{URL}/{uuid4()}").status_code == 404
    assert api.post(f"{ADMIN}/{uuid4()}/verify", {}, content_type="application/json").status_code == 404


@pytest.mark.parametrize(
    ("group", "read", "act"), [(OPERATORS, 200, 201), (AUDITORS, 200, 403), (None, 403, 403)], ids=str
)
def test_auditors_read_and_operators_act(
    root: StorageRoot, now: datetime, group: str | None, read: int, act: int
) -> None:
    client, artifact = at_the_pages(person("ada", group)), an_artifact(root, now)
    assert client.get(URL).status_code == read
    assert order(client, artifact, "verify").status_code == act


def test_a_stranger_reads_and_does_nothing(stranger: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    assert stranger.get(f"{URL}/{artifact.pk}").status_code == 401
    assert order(stranger, artifact, "remove", {"reason": "x"}).status_code == 401
