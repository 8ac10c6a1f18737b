"""The pages of jobs: progress as it was heard last, why a job waits or failed, and the forms of the verbs."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from artifacts.admin.course import pictures
from artifacts.admin.job_verbs import verb
from artifacts.admin.subjects import page_of
from artifacts.models import Job, StorageRoot
from nodes.models import Heartbeat, Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import COMMIT, GIB, a_bad_file, a_job, a_root, an_artifact, progressed
from tests.nodes import browsing
from tests.nodes.browsing import instant, words
from tests.nodes.hearing import Agent

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/job/"
ADD = f"{LIST}add/"


@pytest.fixture
def now() -> datetime:
    """Pages read the clock, so rows are made against it."""
    return instant()


@pytest.fixture
def node(now: datetime) -> Node:
    """A server that was heard just now."""
    node = a_server()
    Agent(node).beat(now)
    return node


@pytest.fixture
def root(node: Node, now: datetime) -> StorageRoot:
    """Its verified root."""
    return a_root(node, now)


def flags(client: Client, job: Job) -> dict[str, Any]:
    """The flags on a job's page, by key."""
    return {flag.key: flag for flag in client.get(page_of(job)).context["flags"]}


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


def test_the_page_tells_the_order_the_lease_and_the_attempts(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="running", allow_patterns=["*.json"], reason="try it", attempt=2, spent=1)
    said = words(mara.get(page_of(job)))
    for told in (f"Commit {COMMIT}", "Only these files *.json", "Formats allowed plain data only", "Reason try it"):
        assert told in said
    for told in ("Attempts begun 2", "Attempts spent 1 of 5", "Lease runs out unless heard in", "Last heard"):
        assert told in said
    assert str(job.lease_id) not in said


def test_a_job_that_runs_is_looked_at_more_often_than_one_that_has_ended(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    runs = mara.get(page_of(a_job(root, now, state="running")))
    ended = mara.get(page_of(a_job(root, now, state="succeeded", repo_id="org/b")))
    assert 'id="live" data-live="3"' in runs.content.decode()
    assert 'id="live" data-live="15"' in ended.content.decode()


def test_a_failure_tells_numbers_and_remedy(mara: Client, root: StorageRoot, now: datetime) -> None:
    """Field case 61."""
    numbers = {"free_bytes": 60 * GIB, "needed_bytes": 490 * GIB, "files_skipped": 3000}
    job = a_job(root, now, state="failed", failure_code="insufficient_capacity", failure_numbers=numbers)
    said = words(mara.get(page_of(job)))
    assert "Not enough room" in said
    assert "Make room on the server" in said
    assert "Needed 490 GiB Free 60 GiB Files skipped 3 000" in said


def test_a_failure_of_another_release_is_shown_as_it_stands(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="failed", failure_code="sun_spots", failure_detail="a flare")
    said = words(mara.get(page_of(job)))
    assert "sun spots a flare" in said


def test_a_paused_job_says_until_when_and_why(mara: Client, root: StorageRoot, now: datetime) -> None:
    later = now + timedelta(minutes=9)
    job = a_job(root, now, not_before=later, failure_code="stalled", failure_detail="No byte came.", spent=2, attempt=2)
    shown = flags(mara, job)
    assert "in 8 min" in shown["paused"].meaning
    assert "2 of 5 attempts are spent" in shown["attempt"].meaning
    assert "tried again by itself" in shown["attempt"].remedy


@pytest.mark.parametrize(
    ("what", "key"), [("root", "root"), ("disabled", "node"), ("silent", "node"), ("ahead", "ahead"), ("none", "")]
)
def test_a_job_that_waits_says_what_for(
    mara: Client, root: StorageRoot, node: Node, now: datetime, what: str, key: str
) -> None:
    job = a_job(root, now)
    match what:
        case "root":
            StorageRoot.objects.update(state="unverified", fault="missing")
        case "disabled":
            Node.objects.update(enabled=False)
        case "silent":
            Heartbeat.objects.update(offline_at=now, stale_at=now)
        case "ahead":
            a_job(root, now, state="running", repo_id="org/other")
    assert list(flags(mara, job)) == ([key] if key else [])


def test_a_preflight_s_answer_is_told_in_words(mara: Client, root: StorageRoot, now: datetime) -> None:
    answer = {
        "files": 31, "bytes": 140 * GIB, "largest_file": "a.safetensors", "largest_bytes": 5 * GIB, "gated": True,
        "fits": False, "needed_bytes": 200 * GIB, "free_bytes": 100 * GIB, "refused": "pytorch_model.bin: a pickle",
    }  # fmt: skip
    job = a_job(root, now, state="succeeded", preflight_only=True, preflight=answer)
    said = words(mara.get(page_of(job)))
    assert "It would be refused pytorch_model.bin: a pickle" in said
    assert "It needs 200 GiB, and 100 GiB are free." in said
    assert "The repository is gated" in said
    assert "Largest file 5 GiB · a.safetensors" in said


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


@pytest.mark.parametrize(("fetched", "reused", "told"), [(0, 0, True), (5, 0, False), (0, 5, False)])
def test_a_snapshot_that_was_here_already_is_said_to_have_been(
    mara: Client, root: StorageRoot, now: datetime, fetched: int, reused: int, told: bool
) -> None:
    brought = {"bytes_total": 5, "bytes_done": 5, "bytes_fetched": fetched, "bytes_reused": reused}
    job = a_job(root, now, state="succeeded", artifact=an_artifact(root, now), **brought)
    assert ("It was here already; nothing was fetched." in words(mara.get(page_of(job)))) is told


def test_only_what_fetches_says_how_much_it_fetched(mara: Client, root: StorageRoot, now: datetime) -> None:
    acquires = a_job(root, now, state="failed", **progressed(now))
    there = {"type": "artifact.verify.v1", "artifact": an_artifact(root, now)}
    verifies = a_job(root, now, state="failed", **there, **progressed(now))
    assert "Fetched" in words(mara.get(page_of(acquires)))
    assert "Fetched" not in words(mara.get(page_of(verifies)))


def test_what_verifying_found_is_told(mara: Client, root: StorageRoot, now: datetime) -> None:
    artifact = an_artifact(root, now)
    found = {"files": 12, "bytes": GIB, "damaged": ["a.bin"], "missing": False}
    job = a_job(root, now, state="succeeded", type="artifact.verify.v1", artifact=artifact, verified=found)
    response = mara.get(page_of(job))
    said = words(response)
    assert "Found 1 damaged" in said
    assert "a.bin" in said
    assert page_of(artifact) in response.content.decode()


def test_the_quarantined_files_of_a_job_are_listed(mara: Client, root: StorageRoot, now: datetime) -> None:
    """Field case 63."""
    job = a_job(root, now, state="failed", failure_code="verification_failed")
    a_bad_file(root, now, job, path="bad.safetensors")
    a_bad_file(root, now, None, path="another.safetensors")
    said = words(mara.get(page_of(job)))
    assert "bad.safetensors" in said
    assert "another.safetensors" not in said


@pytest.mark.parametrize(
    ("state", "offered"),
    [
        ("queued", ["Cancel"]),
        ("running", ["Cancel"]),
        ("failed", ["Retry", "Dismiss", "Order again"]),
        ("cancelled", ["Retry", "Order again"]),
        ("succeeded", ["Order again"]),
    ],
)
def test_only_the_verbs_that_make_sense_are_offered(
    mara: Client, root: StorageRoot, now: datetime, state: str, offered: list[str]
) -> None:
    job = a_job(root, now, state=state)
    assert [button.label for button in mara.get(page_of(job)).context["verbs"]] == offered


def test_an_order_leads_to_its_job_and_the_second_joins_it(mara: Client, root: StorageRoot) -> None:
    form = {"root": str(root.pk), "repo_id": "org/model", "revision": "main", "allow_patterns": "*.json\n\n *.txt "}
    first, again = mara.post(ADD, form), mara.post(ADD, form, follow=True)
    job = Job.objects.get()
    assert first["Location"] == page_of(job)
    assert "org/model is under way already: this is that job." in words(again)
    assert (job.allow_patterns, job.created_by) == (["*.json", "*.txt"], "mara")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"repo_id": "../x"}, "repo_id"),
        ({"repo_id": ""}, "repo_id"),
        ({"revision": "a b"}, "revision"),
        ({"root": ""}, "root"),
        ({"root": str(uuid4())}, "root"),
        ({"allow_formats": ["pickle"]}, "reason"),
        ({"ignore_patterns": "x" * 600}, "ignore_patterns"),
    ],
    ids=["dots", "empty", "blank", "no-root", "unknown-root", "no-reason", "long-pattern"],
)
def test_a_fault_stands_at_its_field(mara: Client, root: StorageRoot, fields: dict[str, Any], field: str) -> None:
    form = {"root": str(root.pk), "repo_id": "org/model", "revision": "main"} | fields
    response = mara.post(ADD, form)
    assert (response.status_code, list(response.context["form"].errors)) == (422, [field])
    assert not Job.objects.exists()


def test_a_format_is_let_in_with_a_reason(mara: Client, root: StorageRoot) -> None:
    form = {
        "root": str(root.pk),
        "repo_id": "org/model",
        "revision": "main",
        "allow_formats": ["pickle"],
        "reason": "old",
    }
    assert mara.post(ADD, form).status_code == 302
    assert Job.objects.get().allow_formats == ["pickle"]


def test_only_verified_roots_are_offered_and_the_others_are_counted(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    a_root(root.node, now, "broken", state="unverified", fault="missing")
    off = a_root(a_server("off"), now, "off")
    Node.objects.filter(pk=off.node_id).update(enabled=False)
    response = mara.get(ADD)
    offered = [key for key, _ in response.context["form"].fields["root"].choices if key]
    assert offered == [str(root.pk)]
    assert "1 storage root is not verified, and not offered." in words(response)


def test_without_a_verified_root_the_form_says_so(mara: Client) -> None:
    assert "There is no verified storage root yet." in words(mara.get(ADD))


def test_an_earlier_order_is_given_once_more(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="succeeded", preflight_only=True, revision="v2", ignore_patterns=["*.bin"])
    initial = mara.get(f"{ADD}?again={job.pk}").context["form"].initial
    assert (initial["root"], initial["repo_id"], initial["revision"]) == (str(root.pk), "org/model", "v2")
    assert initial["ignore_patterns"] == ["*.bin"]
    assert "preflight_only" not in initial  # this time for good


@pytest.mark.parametrize("asked", ["nonsense", str(uuid4())], ids=["nonsense", "unknown"])
def test_an_earlier_order_that_is_none_is_passed_over(mara: Client, asked: str) -> None:
    assert mara.get(f"{ADD}?again={asked}").status_code == 200


def test_cancel_and_retry(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now)
    assert "What was fetched is kept for a while: a retry goes on with it" in words(mara.get(verb(job, "cancel")))
    assert mara.post(verb(job, "cancel"), {"reason": "wrong one"}).status_code == 302
    assert "reason: wrong one" in words(mara.get(page_of(job)))
    job.refresh_from_db()
    assert (job.state, job.cancelled_by) == ("cancelled", "mara")
    assert "Nothing half done is known to be left of it: it begins anew." in words(mara.get(verb(job, "retry")))
    assert mara.post(verb(job, "retry"), {}).status_code == 302
    job.refresh_from_db()
    assert job.state == "queued"
    assert [event.type for event in mara.get(page_of(job)).context["events"]] == ["job.retried", "job.cancelled"]


def test_a_refusal_is_told_on_the_form(mara: Client, root: StorageRoot, now: datetime) -> None:
    response = mara.post(verb(a_job(root, now, state="succeeded"), "cancel"), {})
    assert response.status_code == 422
    assert "has ended already" in words(response)


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


def a_course(root: StorageRoot, now: datetime, *points: tuple[int, int], **fields: Any) -> Job:
    """A job that was so far so many seconds ago."""
    course = [[(now - timedelta(seconds=ago)).timestamp(), done, 2.0 * 2**20] for ago, done in points]
    return a_job(root, now, **{"course": course, "bytes_total": 4 * GIB, "bytes_done": points[-1][1]} | fields)


def test_a_course_is_drawn_in_units_that_suit_it(root: StorageRoot, now: datetime) -> None:
    done, rate = pictures(a_course(root, now, (20, GIB), (10, 2 * GIB), state="running"), now)
    assert (done.unit, done.top, [value for _, value in done.lines[0].points]) == ("GiB", 4.0, [1.0, 2.0])
    assert (rate.unit, [value for _, value in rate.lines[0].points]) == ("MiB/s", [2.0, 2.0])
    assert abs(done.until - now) < timedelta(seconds=1)


def test_a_course_that_ended_is_drawn_to_its_end(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (7200, GIB), (7190, 2 * GIB), state="succeeded")
    assert pictures(job, now)[0].until == datetime.fromtimestamp(job.course[-1][0], UTC)


def test_a_course_is_broken_where_nobody_was_heard(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (1000, GIB), (995, GIB), (990, GIB), (10, 2 * GIB), (5, 2 * GIB), state="running")
    assert [value for _, value in pictures(job, now)[0].lines[0].points] == [1.0, 1.0, 1.0, None, 2.0, 2.0]


def test_a_course_is_broken_where_an_attempt_began_anew(root: StorageRoot, now: datetime) -> None:
    job = a_course(root, now, (30, GIB), (20, 3 * GIB), (10, 0), (5, GIB), state="running")
    done, rate = pictures(job, now)
    assert [value for _, value in done.lines[0].points] == [1.0, 3.0, None, 0.0, 1.0]
    assert [value for _, value in rate.lines[0].points] == [2.0, 2.0, None, 2.0, 2.0]


def test_one_point_is_no_course(root: StorageRoot, now: datetime) -> None:
    assert pictures(a_course(root, now, (5, GIB), state="running"), now) == []
