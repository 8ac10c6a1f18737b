"""The doors to half-done files: what a job's page and REST say of them, and the verb that deletes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from artifacts.models import HalfDone, Job, StorageRoot
from nodes.callers import AUDITORS
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, a_job, a_root, an_artifact
from tests.nodes.browsing import at_the_pages, person
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
BUTTON = "Delete half-done files"


@pytest.fixture
def root(now: datetime) -> StorageRoot:
    """A verified root of a server that was not heard yet."""
    return a_root(a_server(), now)


@pytest.fixture
def failed(root: StorageRoot, now: datetime) -> Job:
    """A job that failed a minute ago."""
    return a_job(root, now, state="failed")


def leaving(job: Job, **fields: Any) -> HalfDone:
    """What it left, by its agent's word."""
    return HalfDone.objects.create(job=job, root=job.root, **{"bytes": 10 * GIB} | fields)


def page(client: Client, job: Job) -> Any:
    """The job's page."""
    return client.get(reverse("admin:artifacts_job_change", args=[job.pk]))


def rows(answer: Any) -> dict[str, str]:
    """What stands under "Half-done files"."""
    return {row.label: row.value for row in answer.context["half_done_rows"]}


def test_the_page_says_how_much_lies_there_and_until_when(mara: Client, failed: Job) -> None:
    leaving(failed)
    answer = page(mara, failed)
    assert rows(answer) == {"On the disk": "10 GiB", "Deleted unless tried again": ""}
    assert BUTTON in [button.label for button in answer.context["verbs"]]


def test_what_was_kept_long_enough_is_not_said_to_be_gone(mara: Client, root: StorageRoot, now: datetime) -> None:
    old = a_job(root, now, state="failed", finished_at=now - timedelta(days=2))
    leaving(old)
    assert rows(page(mara, old))["Deleted unless tried again"] == "with its agent's next claim"
    shown = mara.get(reverse("admin:artifacts_storageroot_change", args=[root.pk])).context["half_done"].rows
    assert "with the next claim" in shown[0][3]


def test_a_job_that_left_nothing_has_no_such_verb(mara: Client, failed: Job) -> None:
    answer = page(mara, failed)
    assert rows(answer) == {}
    assert BUTTON not in [button.label for button in answer.context["verbs"]]


def test_the_verb_says_how_much_it_frees_and_what_a_retry_does_then(mara: Client, failed: Job) -> None:
    leaving(failed)
    asked = mara.get(reverse("admin:artifacts_job_forget", args=[failed.pk])).content.decode()
    assert "Frees 10 GiB on server01" in asked
    assert "A retry then begins anew" in asked
    assert "once the agent&#x27;s word shows it" in asked


def test_an_operator_asks_and_the_page_says_what_is_waited_for(mara: Client, failed: Job) -> None:
    leaving(failed)
    answer = mara.post(reverse("admin:artifacts_job_forget", args=[failed.pk]), {"reason": "full"}, follow=True)
    assert answer.redirect_chain == [(reverse("admin:artifacts_job_change", args=[failed.pk]), 302)]
    assert rows(answer) == {"On the disk": "10 GiB", "To be deleted": "asked by mara"}
    (flag,) = [flag for flag in answer.context["flags"] if flag.key == "forgetting"]
    assert "They count as gone once the agent's word shows it." in flag.meaning
    assert BUTTON not in [button.label for button in answer.context["verbs"]]
    assert told("job.forget_requested") == ["job.forget_requested"]


@pytest.mark.parametrize(
    ("root_fields", "node_fields", "said"),
    [
        ({"state": "unverified", "fault": "missing"}, {}, "is not verified, and nothing is deleted there"),
        ({}, {"enabled": False}, "is disabled, and its agent hears of nothing"),
        ({}, {"held_back_at": datetime(2026, 3, 1, tzinfo=UTC)}, "is held back: it asks again"),
        ({}, {}, "with its next claim. server01 was last heard"),
    ],
    ids=["its root", "disabled", "held back", "offline"],
)
def test_what_stands_in_the_way_is_told(
    mara: Client, failed: Job, now: datetime, root_fields: dict[str, Any], node_fields: dict[str, Any], said: str
) -> None:
    leaving(failed, asked_at=now - MINUTE, asked_by="mara")
    StorageRoot.objects.update(**root_fields or {"state": "verified"})
    Node.objects.update(**node_fields or {"enabled": True})
    (flag,) = [flag for flag in page(mara, failed).context["flags"] if flag.key == "forgetting"]
    assert said in flag.remedy


def test_what_is_gone_is_told_as_gone_and_waits_for_nothing(mara: Client, failed: Job, now: datetime) -> None:
    leaving(failed, asked_at=now - 2 * MINUTE, asked_by="mara", gone_at=now - MINUTE)
    answer = page(mara, failed)
    assert rows(answer) == {"Deleted": "10 GiB, asked by mara"}
    assert [flag.key for flag in answer.context["flags"]] == ["failed"]
    assert BUTTON not in [button.label for button in answer.context["verbs"]]


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (False, "server01 is told already to delete what the job of org/model left half done."),
        (True, "What the job of org/model left half done is gone already."),
    ],
    ids=["asked for", "gone"],
)
def test_what_was_asked_for_is_not_offered_again_and_the_jobs_page_says_why(
    mara: Client, failed: Job, now: datetime, gone: bool, said: str
) -> None:
    leaving(failed, asked_at=now - 2 * MINUTE, asked_by="mara", gone_at=now - MINUTE if gone else None)
    verb = reverse("admin:artifacts_job_forget", args=[failed.pk])
    for answer in (mara.get(verb, follow=True), mara.post(verb, {"reason": "full"}, follow=True)):
        assert answer.redirect_chain == [(reverse("admin:artifacts_job_change", args=[failed.pk]), 302)]
        assert [str(message) for message in answer.context["messages"]] == [said]
    assert told("job.forget_requested") == []


@pytest.mark.parametrize("asked", [False, True], ids=["not asked for", "asked for"])
def test_where_nobody_deletes_them_the_verb_is_not_offered_and_is_refused(
    mara: Client, api: Client, failed: Job, now: datetime, asked: bool
) -> None:
    leaving(failed, **({"asked_at": now, "asked_by": "mara"} if asked else {}))
    StorageRoot.objects.update(state="retired", retired_at=now)
    verb, said = reverse("admin:artifacts_job_forget", args=[failed.pk]), "was retired, and no agent deletes anything"
    assert said in str(*mara.get(verb, follow=True).context["messages"])
    answer = mara.post(verb, {})
    assert (answer.status_code, said in answer.content.decode()) == (422, True)
    answer = api.post(f"/api/v1/admin/jobs/{failed.pk}/forget", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


def test_an_amount_that_nobody_measured_is_not_told_as_none(mara: Client, failed: Job) -> None:
    leaving(failed, bytes=None)
    assert rows(page(mara, failed))["On the disk"] == "not measured"
    asked = mara.get(reverse("admin:artifacts_job_forget", args=[failed.pk])).content.decode()
    assert "Frees an amount that its agent has not measured on server01" in asked


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (None, "it begins anew"),
        ({}, "It goes on with what it left half done (10 GiB)"),
        ({"asked": True}, "is about to be deleted"),
        ({"asked": True, "gone": True}, "What it had fetched was deleted: it begins anew."),
    ],
    ids=["nothing left", "left", "to be deleted", "deleted"],
)
def test_a_retry_says_what_it_begins_with(
    mara: Client, failed: Job, now: datetime, fields: dict[str, bool] | None, said: str
) -> None:
    if fields is not None:
        wished = {"asked_at": now, "asked_by": "mara"} if fields.get("asked") else {}
        leaving(failed, **wished, **({"gone_at": now} if fields.get("gone") else {}))
    assert said in mara.get(reverse("admin:artifacts_job_retry", args=[failed.pk])).content.decode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": "artifact.verify.v1"}, "What is known of the snapshot stays what it was."),
        ({"type": "artifact.remove.v1"}, "Once its agent has unpublished the snapshot, that comes too late"),
    ],
    ids=["verify", "remove"],
)
def test_what_fetches_nothing_leaves_nothing_half_done(
    mara: Client, root: StorageRoot, now: datetime, fields: dict[str, str], said: str
) -> None:
    job = a_job(root, now, artifact=an_artifact(root, now), **fields)
    asked = mara.get(reverse("admin:artifacts_job_cancel", args=[job.pk])).content.decode()
    assert said in asked
    assert "fetched" not in asked
    Job.objects.update(state="cancelled", finished_at=now)
    again = mara.get(reverse("admin:artifacts_job_retry", args=[job.pk])).content.decode()
    assert "half done" not in again


def test_without_a_grace_a_cancellation_keeps_nothing(
    mara: Client, root: StorageRoot, now: datetime, settings: Settings
) -> None:
    settings.PARTIAL_GRACE = timedelta()
    job = a_job(root, now)
    asked = mara.get(reverse("admin:artifacts_job_cancel", args=[job.pk])).content.decode()
    assert "what was fetched is deleted" in asked


def test_a_refusal_stands_on_the_form(mara: Client, root: StorageRoot, now: datetime) -> None:
    waiting = a_job(root, now)
    answer = mara.post(reverse("admin:artifacts_job_forget", args=[waiting.pk]), {})
    assert answer.status_code == 422
    assert "Cancel it first" in answer.content.decode()


def test_the_roots_page_lists_what_lies_there_the_largest_first(mara: Client, root: StorageRoot, now: datetime) -> None:
    for repo_id, weight in (("org/small", GIB), ("org/large", 20 * GIB), ("org/unknown", None)):
        leaving(a_job(root, now, state="cancelled", repo_id=repo_id), bytes=weight)
    leaving(a_job(root, now, repo_id="org/again"))
    shown = mara.get(reverse("admin:artifacts_storageroot_change", args=[root.pk])).context["half_done"].rows
    assert [row[2] for row in shown] == ["20 GiB", "1 GiB", "—"]
    assert "org/large" in shown[0][0]


def test_a_value_of_a_table_carries_its_header_for_narrow_windows(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    leaving(a_job(root, now, state="cancelled"))
    shown = mara.get(reverse("admin:artifacts_storageroot_change", args=[root.pk])).content.decode()
    assert '<td data-label="Room">10 GiB</td>' in shown


def test_a_root_without_any_has_no_such_card(mara: Client, root: StorageRoot) -> None:
    shown = mara.get(reverse("admin:artifacts_storageroot_change", args=[root.pk])).content.decode()
    assert "Half-done files" not in shown


def test_a_script_asks_and_hears_what_is_known(api: Client, failed: Job) -> None:
    leaving(failed)
    path = f"/api/v1/admin/jobs/{failed.pk}"
    before = api.get(path).json()["half_done"]
    assert (before["bytes"], before["forget_requested_at"], before["gone_at"]) == (10 * GIB, None, None)
    assert before["kept_until"] is not None
    answer = api.post(f"{path}/forget", {"reason": "full"}, content_type="application/json")
    assert answer.status_code == 200
    told_of = answer.json()["half_done"]
    assert (told_of["forget_requested_by"], told_of["kept_until"], told_of["gone_at"]) == ("admin token", None, None)
    assert told_of["forget_requested_at"] is not None


def test_a_script_hears_of_nothing_where_nothing_is_known(api: Client, failed: Job) -> None:
    assert api.get(f"/api/v1/admin/jobs/{failed.pk}").json()["half_done"] is None
    answer = api.post(f"/api/v1/admin/jobs/{failed.pk}/forget", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


def test_nothing_is_told_where_nobody_watches_any_more(api: Client, failed: Job, now: datetime) -> None:
    leaving(failed)
    StorageRoot.objects.update(state="retired", retired_at=now)
    assert api.get(f"/api/v1/admin/jobs/{failed.pk}").json()["half_done"] is None


def test_the_list_asks_no_more_often_for_more_of_them(
    api: Client, root: StorageRoot, now: datetime, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        leaving(a_job(root, now, state="failed", repo_id=f"org/{number}"))
    with django_assert_max_num_queries(3):
        shown = api.get("/api/v1/admin/jobs").json()["results"]
    assert [job["half_done"]["bytes"] for job in shown] == [10 * GIB] * 5


def test_an_auditor_reads_and_does_not_ask(failed: Job) -> None:
    leaving(failed)
    client = at_the_pages(person("ada", AUDITORS))
    assert rows(page(client, failed))["On the disk"] == "10 GiB"
    path = f"/api/v1/admin/jobs/{failed.pk}/forget"
    assert client.post(path, {}, content_type="application/json").status_code == 403
    assert client.get(reverse("admin:artifacts_job_forget", args=[failed.pk])).status_code == 403
