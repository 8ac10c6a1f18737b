"""The pages of artifacts: the list, where one lies, and its verbs."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from artifacts.admin.subjects import page_of
from artifacts.models import Artifact, Job, StorageRoot
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import COMMIT, GIB, a_bad_file, a_job, a_root, an_artifact
from tests.nodes import browsing
from tests.nodes.browsing import words
from tests.nodes.hearing import Agent

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/artifact/"


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
