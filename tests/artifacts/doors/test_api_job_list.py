"""The list of jobs by REST: filters, orders, pages."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent import wire
from artifacts.models import StorageRoot
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import a_job, a_root, an_artifact, progressed

pytestmark = pytest.mark.django_db
URL = "/api/v1/admin/jobs"


def faults(response: Any) -> list[str]:
    """The fields at fault."""
    return [error["field"].partition("[")[0].partition(".")[0] for error in response.json()["errors"]]


def repos(client: Client, **query: Any) -> list[str]:
    """The repositories on the page that a query asks for."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [job["repo_id"] for job in response.json()["results"]]


@pytest.fixture
def several(now: datetime) -> dict[str, str]:
    """Jobs that differ in everything; ids by name."""
    here, there = a_root(a_server(), now), a_root(a_server("tower"), now)
    artifact = an_artifact(there, now, repo_id="org/delta")

    def ago(minutes: int) -> dict[str, Any]:
        return {"created_at": now - timedelta(minutes=minutes)}

    alpha = a_job(here, now, repo_id="org/alpha", **ago(1))
    a_job(here, now, repo_id="org/bravo", state="running", revision="v2", **ago(2))
    a_job(there, now, repo_id="org/charlie", state="failed", preflight_only=True, **ago(3))
    a_job(there, now, repo_id="org/delta", state="succeeded", type=wire.VERIFY, artifact=artifact, **ago(4))
    return {
        "server01": str(here.node_id),
        "there": str(there.pk),
        "artifact": str(artifact.pk),
        "alpha": str(alpha.pk),
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["alpha", "bravo", "charlie", "delta"]),
        ({"node": "server01"}, ["alpha", "bravo"]),
        ({"root": "there"}, ["charlie", "delta"]),
        ({"artifact": "artifact"}, ["delta"]),
        ({"state": "running"}, ["bravo"]),
        ({"state": ["queued", "failed"]}, ["alpha", "charlie"]),
        ({"type": wire.VERIFY}, ["delta"]),
        ({"repo_id": "org/alpha"}, ["alpha"]),
        ({"repo_id": "alpha"}, []),
        ({"preflight_only": "true"}, ["charlie"]),
        ({"q": "CHARL"}, ["charlie"]),
        ({"q": "tower"}, ["charlie", "delta"]),
        ({"q": "not_found"}, ["charlie"]),
        ({"q": "alpha-id"}, ["alpha"]),
        ({"ordering": "repo_id"}, ["alpha", "bravo", "charlie", "delta"]),
        ({"ordering": "-repo_id"}, ["delta", "charlie", "bravo", "alpha"]),
        ({"ordering": "created_at"}, ["delta", "charlie", "bravo", "alpha"]),
    ],
    ids=str,
)
def test_a_filter_narrows_and_an_order_orders(
    api: Client, several: dict[str, str], query: dict[str, Any], found: list[str]
) -> None:
    ids = several | {"alpha-id": several["alpha"]}
    wanted = {
        name: ids.get(value, value) if name in {"node", "root", "artifact"} or value == "alpha-id" else value
        for name, value in ((name, value) for name, value in query.items() if isinstance(value, str))
    }
    assert repos(api, **query | wanted) == [f"org/{name}" for name in found]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "done"}, "state"),
        ({"type": "acquire"}, "type"),
        ({"root": "x"}, "root"),
        ({"preflight_only": "1"}, "preflight_only"),
        ({"ordering": "lease_id"}, "ordering"),
        ({"stat": "running"}, "stat"),
        ({"q": "a\x00b"}, "q"),
        ({"page_size": "201"}, "page_size"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_name(api: Client, query: dict[str, str], field: str) -> None:
    response = api.get(URL, query)
    assert (response.status_code, faults(response)) == (400, [field])


@pytest.mark.parametrize("count", [2, 30])
def test_the_list_costs_the_same_for_two_and_for_thirty(
    api: Client, root: StorageRoot, now: datetime, count: int
) -> None:
    for number in range(count):
        a_job(root, now, repo_id=f"org/m{number}", state="succeeded", **progressed(now, 1))
    with CaptureQueriesContext(connection) as queries:
        assert len(repos(api)) == count
    assert len(queries) == 2, [query["sql"] for query in queries]
    assert "course" not in queries[1]["sql"]
