"""A failed job needs attention until somebody dismisses it, or another job did what it failed to do."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agent import wire
from agent.protocol import Code
from artifacts import jobs, listed
from artifacts.models import Job, StorageRoot
from nodes.audit import events
from nodes.callers import AUDITORS, Caller, Refused
from tests.artifacts.ordering import OPERATOR
from tests.artifacts.showing import COMMIT, a_job, a_root, an_artifact
from tests.nodes.browsing import at_the_pages, person
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
OTHER = "f" * 40


@pytest.fixture
def failed(root: StorageRoot, now: datetime) -> Job:
    """A job that failed two minutes ago."""
    return a_job(root, now, state="failed", finished_at=now - 2 * MINUTE)


def wanting(now: datetime) -> list[Job]:
    """The failed jobs that somebody should look at."""
    return list(listed.failed_of_late(now))


def test_a_failed_job_that_is_dismissed_needs_no_attention(failed: Job, now: datetime) -> None:
    assert wanting(now) == [failed]
    jobs.dismiss(failed, reason="the repository is gone", by=OPERATOR, now=now)
    assert wanting(now) == []
    failed.refresh_from_db()
    assert (failed.state, failed.dismissed_at, failed.dismissed_by) == ("failed", now, "admin token")


def test_it_is_told_once_with_the_reason(failed: Job, now: datetime) -> None:
    for _ in range(2):
        jobs.dismiss(failed, reason="the repository is gone", by=OPERATOR, now=now)
    (event,) = events().filter(type="job.dismissed")
    assert (event.about_id, event.actor_label) == (str(failed.pk), "admin token")
    assert event.details["reason"] == "the repository is gone"
    assert event.details["failure_code"] == "not_found"


@pytest.mark.parametrize("state", ["queued", "running", "succeeded", "cancelled"])
def test_only_what_failed_is_dismissed(root: StorageRoot, now: datetime, state: str) -> None:
    with pytest.raises(Refused) as caught:
        jobs.dismiss(a_job(root, now, state=state), by=OPERATOR, now=now)
    assert caught.value.code is Code.STATE_CONFLICT


def test_an_auditor_dismisses_nothing(failed: Job, auditor: Caller, now: datetime) -> None:
    with pytest.raises(Refused) as caught:
        jobs.dismiss(failed, by=auditor, now=now)
    assert caught.value.code is Code.FORBIDDEN
    assert wanting(now) == [failed]


def test_one_that_is_tried_again_and_fails_anew_needs_attention_anew(failed: Job, now: datetime) -> None:
    jobs.dismiss(failed, by=OPERATOR, now=now)
    jobs.retry(failed, by=OPERATOR, now=now)
    Job.objects.update(state="failed", finished_at=now, failure_code="stalled")
    assert wanting(now) == [failed]


def a_success(root: StorageRoot, now: datetime, **fields: Any) -> Job:
    """A job that succeeded a minute ago, ordered before the other failed, so that it is no newer order of the same."""
    said = {"state": "succeeded", "created_at": now - timedelta(hours=1), "finished_at": now - MINUTE}
    return a_job(root, now, **said | fields)


@pytest.mark.parametrize(
    "fields",
    [{}, {"revision": COMMIT}, {"commit": OTHER}],
    ids=["the same", "the commit by its name", "the branch, moved on"],
)
def test_a_snapshot_that_came_by_another_job_settles_it(
    failed: Job, root: StorageRoot, now: datetime, fields: dict[str, str]
) -> None:
    a_success(root, now, **fields)
    assert wanting(now) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"repo_id": "org/other"},
        {"selection": "ab" * 32},
        {"revision": "v2", "commit": OTHER},
        {"preflight_only": True},
        {"state": "cancelled"},
    ],
    ids=["another model", "other files", "another revision", "a preflight", "cancelled"],
)
def test_anything_else_settles_nothing(failed: Job, root: StorageRoot, now: datetime, fields: dict[str, Any]) -> None:
    a_success(root, now, **fields)
    assert wanting(now) == [failed]


def test_the_same_on_another_root_settles_nothing(failed: Job, root: StorageRoot, now: datetime) -> None:
    a_success(a_root(root.node, now, "elsewhere"), now)
    assert wanting(now) == [failed]


def test_what_succeeded_before_it_failed_settles_nothing(failed: Job, root: StorageRoot, now: datetime) -> None:
    a_success(root, now, finished_at=now - 3 * MINUTE)
    assert wanting(now) == [failed]


def test_a_failed_preflight_is_settled_by_the_snapshot_itself(root: StorageRoot, now: datetime) -> None:
    preflight = a_job(root, now, state="failed", preflight_only=True, finished_at=now - 2 * MINUTE)
    assert wanting(now) == [preflight]
    a_success(root, now)
    assert wanting(now) == []


def test_a_failed_verification_is_settled_by_one_that_succeeds_or_by_the_removal(
    root: StorageRoot, now: datetime
) -> None:
    said = {"type": wire.VERIFY, "artifact": an_artifact(root, now)}
    failed = a_job(root, now, state="failed", finished_at=now - 2 * MINUTE, **said)
    assert wanting(now) == [failed]
    later = a_success(root, now, **said)
    assert wanting(now) == []
    later.type = wire.REMOVE
    later.save(update_fields=["type"])
    assert wanting(now) == []


def test_nobody_can_mend_what_failed_on_a_retired_root(failed: Job, now: datetime) -> None:
    StorageRoot.objects.update(state="retired", retired_at=now)
    assert wanting(now) == []


# The doors.


def test_an_operator_dismisses_it_on_its_page(mara: Client, failed: Job, now: datetime) -> None:
    page = reverse("admin:artifacts_job_change", args=[failed.pk])
    asked = mara.get(reverse("admin:artifacts_job_dismiss", args=[failed.pk])).content.decode()
    assert "It stays in the list of jobs and in the history." in asked
    answer = mara.post(reverse("admin:artifacts_job_dismiss", args=[failed.pk]), {"reason": "seen"}, follow=True)
    assert answer.redirect_chain == [(page, 302)]
    assert [button.label for button in answer.context["verbs"]] == ["Retry", "Order again"]
    assert "Dismissed" in answer.content.decode()
    assert [flag.urgent for flag in answer.context["flags"]] == [False]
    assert mara.get("/admin/").context["models"].concerns == []
    rows = mara.get(reverse("admin:artifacts_job_changelist")).content.decode()
    assert "No such repository, revision or file · dismissed" in rows


def test_a_script_dismisses_it(api: Client, failed: Job) -> None:
    path = f"/api/v1/admin/jobs/{failed.pk}/dismiss"
    answer = api.post(path, {"reason": "seen"}, content_type="application/json")
    assert (answer.status_code, answer.json()["dismissed_by"]) == (200, "admin token")
    assert answer.json()["dismissed_at"] is not None
    assert told("job.dismissed") == ["job.dismissed"]


def test_an_auditors_script_does_not(failed: Job) -> None:
    client = at_the_pages(person("ada", AUDITORS))
    path = f"/api/v1/admin/jobs/{failed.pk}/dismiss"
    assert client.post(path, {}, content_type="application/json").status_code == 403
    assert client.get(reverse("admin:artifacts_job_dismiss", args=[failed.pk])).status_code == 403
