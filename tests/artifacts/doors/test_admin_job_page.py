"""A job's page: how it stands, what came of it, and what may be done about it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from artifacts.admin.job_verbs import verb
from artifacts.admin.subjects import page_of
from artifacts.models import Job, StorageRoot
from nodes.models import Heartbeat, Node
from tests.artifacts.showing import COMMIT, GIB, a_bad_file, a_job, an_artifact, progressed
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db


def flags(client: Client, job: Job) -> dict[str, Any]:
    """The flags on a job's page, by key."""
    return {flag.key: flag for flag in client.get(page_of(job)).context["flags"]}


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


def test_cancel_and_retry(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now)
    assert "What was fetched is kept for 1 d: a retry goes on with it" in words(mara.get(verb(job, "cancel")))
    assert "Cancel the job Back" in words(mara.get(verb(job, "cancel"))), "the way back is no second way to cancel"
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
