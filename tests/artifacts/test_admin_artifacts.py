"""The pages of artifacts, and what a node's page and the home page show of artifacts."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from artifacts.admin.subjects import page_of
from artifacts.models import Artifact, Job, StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import COMMIT, GIB, a_bad_file, a_job, a_root, an_artifact, progressed
from tests.nodes import browsing
from tests.nodes.browsing import instant, words
from tests.nodes.hearing import Agent

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/artifact/"


@pytest.fixture
def now() -> datetime:
    """Pages read the clock, so rows are made against it."""
    return instant()


@pytest.fixture
def root(now: datetime) -> StorageRoot:
    """A verified root of a server that was heard just now."""
    node = a_server()
    Agent(node).beat(now)
    return a_root(node, now)


def verb(artifact: Artifact, name: str) -> str:
    """Where a verb has its page."""
    return reverse(f"admin:artifacts_artifact_{name}", args=[artifact.pk])


def test_an_empty_list_says_how_something_gets_there(mara: Client) -> None:
    assert "Nothing was published yet." in words(mara.get(LIST))


def test_the_list_tells_commit_place_size_and_when_it_was_verified(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    an_artifact(root, now, selection="ab" * 32)
    said = words(mara.get(LIST))
    assert (
        f"org/model {COMMIT[:12]} · main · part of it published server01 /data/artifacts/models 40 GiB 12 files" in said
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"alpha", "bravo", "delta"}),
        ("?state=damaged", {"bravo"}),
        ("?state=removed", {"gone"}),
        ("?node=tower", {"delta"}),
        ("?q=alph", {"alpha"}),
    ],
)
def test_a_filter_narrows(mara: Client, root: StorageRoot, now: datetime, query: str, found: set[str]) -> None:
    an_artifact(root, now, repo_id="org/alpha")
    an_artifact(root, now, repo_id="org/bravo", state="damaged")
    an_artifact(root, now, repo_id="org/gone", state="removed", removed_at=now)
    an_artifact(a_root(a_server("tower"), now), now, repo_id="org/delta")
    said = words(mara.get(LIST + query))
    assert {name for name in ("alpha", "bravo", "gone", "delta") if f"org/{name}" in said} == found


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_costs_the_same_for_two_and_for_twenty(mara: Client, now: datetime, count: int) -> None:
    for number in range(count):
        an_artifact(a_root(a_server(f"server{number:02}"), now), now)
    with CaptureQueriesContext(connection) as queries:
        mara.get(LIST)
    assert len(queries) <= 7, [query["sql"] for query in queries]


def test_the_page_says_where_it_lies_on_both_sides(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    a_job(root, now, state="succeeded", artifact=artifact)
    said = words(mara.get(page_of(artifact)))
    assert f"/data/artifacts/models/models/org/model/{COMMIT}" in said
    assert f"/mnt/cache/appdata/agent/artifacts/models/models/org/model/{COMMIT}" in said
    assert f"Size 40 GiB ({40 * GIB} bytes)" in said
    assert "org/model acquire · main" in said


def test_a_damaged_one_names_its_files_and_when_it_was_whole(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now, state="damaged", damaged=["a.safetensors", "b.json"])
    said = words(mara.get(page_of(artifact)))
    assert "2 files changed or missing when it was read last. It was whole on" in said
    assert "a.safetensors b.json" in said


def test_of_an_unverified_root_nobody_knows_whether_it_is_there(mara: Client, root: StorageRoot, now: datetime) -> None:
    StorageRoot.objects.update(state="unverified", fault="missing")
    said = words(mara.get(page_of(an_artifact(root, now))))
    assert "whether the files are there is not known" in said


def test_one_in_a_retired_root_says_so_and_has_no_verbs(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    StorageRoot.objects.update(state="retired", retired_at=now)
    response = mara.get(page_of(artifact))
    assert "was retired: nobody watches these files." in words(response)
    assert response.context["verbs"] == []


def test_a_removed_one_says_so_and_has_no_verbs(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now, state="removed", removed_at=now - timedelta(minutes=3))
    response = mara.get(page_of(artifact))
    assert response.context["verbs"] == []
    assert "unpublished and deleted 3 min ago" in words(response)
    assert "Where it lies" not in words(response)


@pytest.mark.parametrize(("name", "kind"), [("verify", "artifact.verify.v1"), ("remove", "artifact.remove.v1")])
def test_a_verb_leads_to_the_job_that_it_orders(
    mara: Client, root: StorageRoot, now: datetime, name: str, kind: str
) -> None:
    artifact = an_artifact(root, now)
    response = mara.post(verb(artifact, name), {"reason": "old"})
    job = Job.objects.get()
    assert (response.status_code, response["Location"]) == (302, page_of(job))
    assert (job.type, job.artifact, job.reason) == (kind, artifact, "old")


def test_removing_asks_why(mara: Client, root: StorageRoot, now: datetime) -> None:
    assert mara.post(verb(an_artifact(root, now), "remove"), {}).status_code == 422
    assert not Job.objects.exists()


def test_a_refusal_is_told_on_the_form(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    StorageRoot.objects.update(state="unverified", fault="missing")
    response = mara.post(verb(artifact, "verify"), {})
    assert response.status_code == 422
    assert "is not verified (missing)" in words(response)


def test_an_auditor_reads_and_is_offered_nothing(root: StorageRoot, now: datetime) -> None:
    artifact, audrey = an_artifact(root, now), browsing.an_auditor()
    assert audrey.get(page_of(artifact)).context["verbs"] == []
    for name in ("verify", "remove"):
        assert audrey.get(verb(artifact, name)).status_code == 403
        assert audrey.post(verb(artifact, name), {"reason": "x"}).status_code == 403


@pytest.mark.parametrize("key", [str(uuid4()), "no-uuid"], ids=["unknown", "no-uuid"])
def test_an_artifact_that_is_none_is_not_found(mara: Client, key: str) -> None:
    assert mara.get(f"{LIST}{key}/change/").status_code == 404


def test_names_are_shown_as_text(mara: Client, root: StorageRoot, now: datetime) -> None:
    evil = "<script>alert(1)</script>"
    artifact = an_artifact(root, now, repo_id=evil, snapshot=evil, state="damaged", damaged=[evil])
    a_bad_file(root, now, None, path=evil, repo_id=evil, reason=evil, found=evil, location=evil)
    for page in (LIST, page_of(artifact), verb(artifact, "remove"), browsing.page_of(root.node), "/admin/"):
        assert evil not in mara.get(page).content.decode()


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
