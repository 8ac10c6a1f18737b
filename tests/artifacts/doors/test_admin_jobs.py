"""The list of jobs: progress as it was heard last, filters, and who may look."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from artifacts.admin.job_verbs import verb
from artifacts.admin.subjects import page_of
from artifacts.models import StorageRoot
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, a_bad_file, a_job, a_root, an_artifact, progressed
from tests.nodes import browsing
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/job/"
ADD = f"{LIST}add/"


def test_an_empty_list_offers_to_order(mara: Client) -> None:
    response = mara.get(LIST)
    assert "Nothing was ordered yet." in words(response)
    assert ADD in response.content.decode()


def test_the_list_tells_how_far_a_job_is_and_when_it_was_heard(mara: Client, root: StorageRoot, now: datetime) -> None:
    a_job(root, now, state="running", **progressed(now, 0.25, 40 * GIB))
    said = words(mara.get(LIST))
    assert "org/model acquire · main running fetching server01 /data/artifacts/models" in said
    assert "10 GiB of 40 GiB 25 %, heard" in said
    assert "150 MiB/s about 3 min left" in said


def test_a_job_whose_agent_is_not_heard_has_no_rate(mara: Client, root: StorageRoot, now: datetime) -> None:
    """Field case 75."""
    long_ago = now - timedelta(hours=1)
    job = a_job(root, long_ago, state="running", **progressed(long_ago, 0.25))
    said = words(mara.get(LIST))
    assert "not heard" in said
    assert "MiB/s" not in said
    page = words(mara.get(page_of(job)))
    assert "The agent is not heard Its lease ran out" in page
    assert "Rate —" in page


@pytest.mark.parametrize(("done", "shown"), [(0, "0 %"), (999_999, "99 %"), (1_000_000, "100 %")])
def test_a_job_is_not_whole_before_it_is(mara: Client, root: StorageRoot, now: datetime, done: int, shown: str) -> None:
    said = progressed(now) | {"bytes_total": 1_000_000, "bytes_done": done}
    job = a_job(root, now, state="running", **said)
    assert mara.get(page_of(job)).context["percent"] == shown


def test_before_the_plan_there_is_no_share(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now)
    response = mara.get(page_of(job))
    assert response.context["share"] is None
    assert "It waits. How much it is, is known once the plan is made." in words(response)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"alpha", "bravo", "charlie", "delta"}),
        ("?state=active", {"alpha", "bravo"}),
        ("?state=failed", {"charlie"}),
        ("?type=preflight", {"alpha"}),
        ("?type=artifact.acquire.v1", {"bravo", "charlie"}),
        ("?type=artifact.verify.v1", {"delta"}),
        ("?node=tower", {"delta"}),
        ("?root=/data/artifacts/other", {"delta"}),
        ("?q=not_found", {"charlie"}),
    ],
)
def test_a_filter_narrows(mara: Client, root: StorageRoot, now: datetime, query: str, found: set[str]) -> None:
    other = a_root(a_server("tower"), now, "other")
    a_job(root, now, repo_id="org/alpha", preflight_only=True)
    a_job(root, now, repo_id="org/bravo", state="running")
    a_job(root, now, repo_id="org/charlie", state="failed")
    artifact = an_artifact(other, now, repo_id="org/delta")
    a_job(other, now, repo_id="org/delta", state="succeeded", type="artifact.verify.v1", artifact=artifact)
    said = words(mara.get(LIST + query))
    assert {name for name in ("alpha", "bravo", "charlie", "delta") if f"org/{name}" in said} == found


@pytest.mark.parametrize("by", ["node", "root"])
def test_a_link_from_elsewhere_filters_by_id(mara: Client, root: StorageRoot, now: datetime, by: str) -> None:
    a_job(root, now)
    a_job(a_root(a_server("tower"), now), now, repo_id="org/other")
    said = words(mara.get(f"{LIST}?{by}={root.node_id if by == 'node' else root.pk}"))
    assert "org/model" in said
    assert "org/other" not in said


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_costs_the_same_for_two_and_for_twenty(mara: Client, now: datetime, count: int) -> None:
    for number in range(count):
        a_job(a_root(a_server(f"server{number:02}"), now), now, state="running")
    with CaptureQueriesContext(connection) as queries:
        mara.get(LIST)
    assert len(queries) <= 7, [query["sql"] for query in queries]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"fits": True, "refused": ""}, "succeeded fits"),
        ({"fits": False, "refused": ""}, "succeeded does not fit"),
        ({"fits": True, "refused": "a pickle"}, "succeeded would be refused"),
    ],
    ids=["fits", "does not fit", "refused"],
)
def test_the_list_says_what_a_preflight_came_to(
    mara: Client, root: StorageRoot, now: datetime, answer: dict[str, Any], said: str
) -> None:
    a_job(root, now, state="succeeded", preflight_only=True, preflight=answer)
    assert said in words(mara.get(LIST))


def test_an_auditor_reads_and_is_offered_nothing(root: StorageRoot, now: datetime) -> None:
    job, audrey = a_job(root, now), browsing.an_auditor()
    assert audrey.get(LIST).context["add"] is None
    assert audrey.get(page_of(job)).context["verbs"] == []
    for path in (ADD, verb(job, "cancel"), verb(job, "retry")):
        assert audrey.get(path).status_code == 403
        assert audrey.post(path, {"reason": "x"}).status_code == 403


@pytest.mark.parametrize("key", [str(uuid4()), "no-uuid"], ids=["unknown", "no-uuid"])
def test_a_job_that_is_none_is_not_found(mara: Client, key: str) -> None:
    assert mara.get(f"{LIST}{key}/change/").status_code == 404


def test_names_are_shown_as_text(mara: Client, root: StorageRoot, now: datetime) -> None:
    evil = "<script>alert(1)</script>"
    job = a_job(root, now, state="failed", repo_id=evil, failure_detail=evil, phase="<script>", allow_patterns=[evil])
    a_bad_file(root, now, job, path=evil, repo_id=evil, location=evil)
    for page in (LIST, page_of(job), verb(job, "retry"), f"{ADD}?again={job.pk}"):
        assert evil not in mara.get(page).content.decode()
