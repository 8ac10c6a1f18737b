"""Jobs by REST: ordered once, joined, and shown with their progress and failure."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from agent import wire
from artifacts.models import Job, StorageRoot
from tests.artifacts.doors.asking import order, send
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import COMMIT, GIB, a_job, a_root, an_artifact, progressed
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db
URL = "/api/v1/admin/jobs"


def faults(response: Any) -> list[str]:
    """The fields at fault."""
    return [error["field"].partition("[")[0].partition(".")[0] for error in response.json()["errors"]]


def test_an_order_is_queued_with_what_was_asked(api: Client, root: StorageRoot) -> None:
    response = order(
        api, root, allow_patterns=["*.json"], allow_formats=["pickle"], preflight_only=True, reason="an old model"
    )
    shown = response.json()
    assert (response.status_code, shown["state"], shown["joined"], shown["type"]) == (
        201,
        "queued",
        False,
        wire.ACQUIRE,
    )
    assert (shown["revision"], shown["allow_patterns"], shown["allow_formats"]) == ("main", ["*.json"], ["pickle"])
    assert (shown["preflight_only"], shown["progress"], shown["failure"]) == (True, None, None)
    assert told("job.ordered") == ["job.ordered"]


def test_the_same_order_joins_the_one_under_way(api: Client, root: StorageRoot) -> None:
    first = order(api, root).json()
    again = order(api, root)
    assert (again.status_code, again.json()["joined"], again.json()["id"]) == (200, True, first["id"])
    assert Job.objects.count() == 1


def test_another_revision_is_another_order(api: Client, root: StorageRoot) -> None:
    order(api, root)
    assert order(api, root, revision="v2").status_code == 201


def test_the_same_key_answers_the_same_even_after_the_job_has_ended(api: Client, root: StorageRoot) -> None:
    first = order(api, root, key="a").json()
    Job.objects.update(state=Job.State.CANCELLED, finished_at=datetime.now(UTC))
    again = order(api, root, key="a")
    assert (again.status_code, again["Idempotency-Replayed"], again.json()) == (201, "true", first)


def test_the_same_key_with_another_order_is_refused(api: Client, root: StorageRoot) -> None:
    order(api, root, key="a")
    assert order(api, root, key="a", repo_id="org/other").status_code == 422


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"repo_id": "no repo"}, "repo_id"),
        ({"repo_id": "../x"}, "repo_id"),
        ({"revision": "a b"}, "revision"),
        ({"allow_patterns": "*.json"}, "allow_patterns"),
        ({"allow_formats": ["pickles"], "reason": "x"}, "allow_formats"),
        ({"allow_formats": ["pickle"]}, "reason"),
        ({"root_id": str(uuid4())}, "root_id"),
        ({"artifact_id": str(uuid4())}, "artifact_id"),
        ({"type": "artifact.burn.v1"}, "type"),
        ({"files": ["x"]}, "files"),
    ],
    ids=["blank", "dots", "revision", "patterns", "format", "no-reason", "no-root", "artifact", "type", "unknown"],
)
def test_an_order_s_fault_is_named(api: Client, root: StorageRoot, fields: dict[str, Any], field: str) -> None:
    response = order(api, root, **fields)
    assert (response.status_code, faults(response)) == (400, [field])
    assert not Job.objects.exists()


def test_an_order_without_a_place_or_a_name_says_both(api: Client) -> None:
    response = send(api, URL, {})
    assert (response.status_code, faults(response)) == (400, ["root_id", "repo_id"])


def test_a_root_that_is_not_verified_takes_no_order(api: Client, now: datetime) -> None:
    root = a_root(a_server(), now, state="unverified", fault="fuse")
    response = order(api, root)
    assert (response.status_code, response.json()["code"]) == (409, "root_unverified")


def test_an_agent_that_does_not_speak_a_type_is_given_no_order_of_it(api: Client, now: datetime) -> None:
    root = a_root(a_server(types=[]), now)
    response = order(api, root)
    assert (response.status_code, response.json()["code"]) == (409, "job_type_unsupported")


@pytest.mark.parametrize("kind", [wire.VERIFY, wire.REMOVE])
def test_an_artifact_s_orders_are_given_here_too(api: Client, root: StorageRoot, now: datetime, kind: str) -> None:
    artifact = an_artifact(root, now)
    response = send(api, URL, {"type": kind, "artifact_id": str(artifact.pk), "reason": "old"})
    shown = response.json()
    assert (response.status_code, shown["type"], shown["artifact_id"]) == (201, kind, str(artifact.pk))


def test_an_order_about_an_artifact_takes_nothing_of_an_acquisition(api: Client, root: StorageRoot) -> None:
    response = order(api, root, type=wire.VERIFY)
    assert (response.status_code, sorted(faults(response))) == (400, ["artifact_id", "repo_id", "root_id"])


def test_progress_is_told_with_the_instant_that_it_was_heard(api: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="running", **progressed(now, 0.25, 40 * GIB))
    shown = api.get(f"{URL}/{job.pk}").json()
    progress = shown["progress"]
    assert (progress["phase"], progress["bytes_done"], progress["bytes_total"]) == ("fetch", 10 * GIB, 40 * GIB)
    assert (progress["bytes_per_second"], progress["eta_seconds"]) == (150.0 * 2**20, 205.0)
    assert progress["at"] is not None
    assert len(shown["course"]) == 61
    assert (shown["commit"], shown["attempt"]) == (COMMIT, 1)
    assert "lease_id" not in shown


def test_a_job_that_has_ended_has_no_rate(api: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="succeeded", **progressed(now, 1))
    progress = api.get(f"{URL}/{job.pk}").json()["progress"]
    assert (progress["bytes_per_second"], progress["eta_seconds"]) == (None, None)


def test_a_failure_tells_its_numbers_and_its_remedy(api: Client, root: StorageRoot, now: datetime) -> None:
    """Field case 61."""
    numbers = {"needed_bytes": 9 * GIB, "free_bytes": GIB}
    job = a_job(root, now, state="failed", failure_code="insufficient_capacity", failure_numbers=numbers)
    failure = api.get(f"{URL}/{job.pk}").json()["failure"]
    assert (failure["code"], failure["lasting"], failure["numbers"]) == ("insufficient_capacity", True, numbers)
    assert "Make room" in failure["remedy"]


@pytest.mark.parametrize(("state", "says"), [("queued", "tried again by itself"), ("failed", "Then retry")])
def test_a_passing_failure_says_whether_it_is_tried_again(
    api: Client, root: StorageRoot, now: datetime, state: str, says: str
) -> None:
    job = a_job(root, now, state=state, failure_code="stalled")
    failure = api.get(f"{URL}/{job.pk}").json()["failure"]
    assert not failure["lasting"]
    assert says in failure["remedy"]


def test_a_preflight_s_answer_is_shown(api: Client, root: StorageRoot, now: datetime) -> None:
    answer = wire.Preflight(
        files=3, bytes=9, largest_file="a", largest_bytes=5, fits=False, needed_bytes=9, free_bytes=1
    )
    job = a_job(root, now, state="succeeded", preflight_only=True, preflight=_plain(answer))
    shown = api.get(f"{URL}/{job.pk}").json()["preflight"]
    assert (shown["files"], shown["fits"], shown["needed_bytes"], shown["refused"]) == (3, False, 9, "")


def _plain(message: Any) -> Any:
    return json.loads(wire.encode(message))
