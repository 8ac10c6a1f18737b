"""What the home page and a node's page show of roots, jobs and artifacts."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from artifacts.models import Job, StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, a_bad_file, a_job, a_root, an_artifact, progressed
from tests.nodes import browsing
from tests.nodes.browsing import words
from tests.nodes.hearing import Agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(now: datetime) -> StorageRoot:
    """A verified root of a server that was heard just now."""
    node = a_server()
    Agent(node).beat(now)
    return a_root(node, now)


def test_a_nodes_page_shows_its_roots_jobs_artifacts_and_quarantine(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    a_job(root, now, state="running", repo_id="org/coming", **progressed(now, 0.25))
    an_artifact(root, now, repo_id="org/there", bytes=7 * GIB)
    a_bad_file(root, now, path="bad.safetensors")
    a_bad_file(root, now, path="lost.bin", kept=False, location="")
    said = words(mara.get(browsing.page_of(root.node)))
    assert "/data/artifacts/models /mnt/cache/appdata/agent/artifacts/models verified 50 % 1 TiB free of 2 TiB" in said
    assert "5 % · 102 GiB 30 GiB 7 GiB" in said  # reserve, reserved by jobs, artifacts
    for told in ("org/coming", "org/there", "bad.safetensors", "wrong bytes", "not kept: no room"):
        assert told in said


def test_a_nodes_page_without_any_says_so(mara: Client) -> None:
    said = words(mara.get(browsing.page_of(a_server())))
    for told in ("models have nowhere to go on this node", "nothing was ordered yet", "no file of this node had wrong"):
        assert told in said


def test_a_nodes_page_leaves_out_what_belongs_to_others(mara: Client, root: StorageRoot, now: datetime) -> None:
    other = a_server("tower")
    an_artifact(root, now, repo_id="org/there")
    a_bad_file(root, now, path="bad.safetensors")
    said = words(mara.get(browsing.page_of(other)))
    assert "org/there" not in said
    assert "bad.safetensors" not in said


@pytest.mark.parametrize("count", [1, 6])
def test_a_nodes_page_costs_the_same_for_one_and_for_six(mara: Client, now: datetime, count: int) -> None:
    node = a_server()
    for number in range(count):
        root = a_root(node, now, f"r{number}")
        a_job(root, now, repo_id=f"org/j{number}")
        an_artifact(root, now)
        a_bad_file(root, now)
    with CaptureQueriesContext(connection) as queries:
        mara.get(browsing.page_of(node))
    assert len(queries) <= 21, [query["sql"] for query in queries]


def home(client: Client) -> str:
    """What the home page says."""
    return words(client.get("/admin/"))


def test_the_home_page_tells_what_runs_and_how_far_it_is(mara: Client, root: StorageRoot, now: datetime) -> None:
    a_job(root, now, state="running", repo_id="org/coming", **progressed(now, 0.25, 40 * GIB))
    a_job(root, now, repo_id="org/next")
    said = home(mara)
    assert "Models on their way 1 running, 1 queued" in said
    assert "org/coming fetching on server01 25 % · 10 GiB of 40 GiB" in said
    assert "150 MiB/s · about 3 min left · heard" in said


def test_the_home_page_shows_the_fullest_disks_first(mara: Client, root: StorageRoot, now: datetime) -> None:
    a_root(root.node, now, "full", free_bytes=GIB, device_id="8:2")
    said = home(mara)
    assert said.index("/data/artifacts/full") < said.index("/data/artifacts/models")
    assert "1 GiB free of 2 TiB" in said


def concerns(client: Client) -> list[str]:
    """The names under "needs attention", of artifacts."""
    return [concern.name for concern in client.get("/admin/").context["models"].concerns]


def test_the_home_page_tells_what_wants_an_eye(mara: Client, root: StorageRoot, now: datetime) -> None:
    a_root(root.node, now, "bad", state="unverified", fault="marker_missing")
    a_job(root, now, state="failed", repo_id="org/failed")
    an_artifact(root, now, repo_id="org/broken", state="damaged", damaged=["x"])
    assert concerns(mara) == ["/data/artifacts/bad", "org/failed", "org/broken"]
    assert "The marker is gone." in home(mara)


@pytest.mark.parametrize("why", ["ordered again", "retried", "old", "retired"])
def test_a_failed_job_that_nobody_needs_to_look_at_is_left_out(
    mara: Client, root: StorageRoot, now: datetime, why: str
) -> None:
    job = a_job(root, now, state="failed")
    assert concerns(mara) == ["org/model"]
    match why:
        case "ordered again":
            a_job(root, now, created_at=now)
        case "retried":
            mara.post(reverse("admin:artifacts_job_retry", args=[job.pk]), {})
        case "old":
            Job.objects.update(finished_at=now - timedelta(days=8))
        case "retired":
            Node.objects.update(retired_at=now)
    assert concerns(mara) == []


def test_a_preflight_that_failed_is_not_outlived_by_another_order(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    a_job(root, now, state="failed", preflight_only=True)
    a_job(root, now, created_at=now)
    assert concerns(mara) == ["org/model"]


@pytest.mark.parametrize("count", [1, 9])
def test_the_home_page_costs_the_same_for_one_and_for_nine(mara: Client, now: datetime, count: int) -> None:
    for number in range(count):
        node = a_server(f"server{number:02}")
        root = a_root(node, now)
        a_job(root, now, state="running")
        a_job(root, now, state="failed", repo_id="org/failed")
        an_artifact(root, now, state="damaged")
        a_root(node, now, "bad", state="unverified", fault="missing")
    with CaptureQueriesContext(connection) as queries:
        mara.get("/admin/")
    assert len(queries) <= 20, [query["sql"] for query in queries]
