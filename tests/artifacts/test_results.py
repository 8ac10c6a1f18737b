"""Hearing how a job ended: it counts once, and what follows from it."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import jobs, orders, quarantine
from artifacts.models import Artifact, Job, QuarantinedFile, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Refused
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    MANIFEST,
    OPERATOR,
    SECOND,
    Worker,
    a_root,
    a_server,
    an_artifact,
    ordered,
    published,
)
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND
OTHER = "beef" + "0" * 36
ARTIFACT = ("artifact.published", "artifact.verified", "artifact.damaged", "artifact.removed")


@pytest.fixture
def root() -> StorageRoot:
    """A proven root."""
    return a_root(a_server())


@pytest.fixture
def worker(root: StorageRoot) -> Worker:
    """The agent of its node."""
    return Worker(root.node)


def stored(given: wire.Job) -> Job:
    """The job as it stands."""
    return Job.objects.get(pk=given.id)


def refused(act: Any, code: Code = Code.INVALID) -> Refused:
    """The refusal that the act meets."""
    with pytest.raises(Refused) as caught:
        act()
    assert caught.value.code is code
    return caught.value


# A snapshot.


def test_a_published_snapshot_is_an_artifact(worker: Worker, root: StorageRoot) -> None:
    ordered(root, ignore_patterns=["*.bin"])
    given = worker.take()
    assert worker.publish(given, LATER, bytes_reused=GIB) == "succeeded"
    artifact = Artifact.objects.get()
    selection = orders.selection_digest([], ["*.bin"])
    assert (artifact.repo_id, artifact.commit, artifact.selection) == ("org/model", COMMIT, selection)
    assert artifact.snapshot == f"models/org/model/{COMMIT}.{selection[:12]}"
    assert (artifact.files, artifact.bytes, artifact.manifest_sha256) == (3, 10 * GIB, MANIFEST)
    assert (artifact.state, artifact.published_at, artifact.verified_at) == ("published", LATER, LATER)
    job = stored(given)
    assert (job.artifact, job.finished_at, job.commit) == (artifact, LATER, COMMIT)
    assert (job.bytes_done, job.bytes_total, job.bytes_fetched, job.bytes_reused) == (10 * GIB, 10 * GIB, 10 * GIB, GIB)
    assert (job.lease_id, job.lease_expires_at, job.boot_id) == (None, None, None)
    ends = ["job.pinned", "artifact.published", "job.succeeded"]
    assert told(*ends) == ends


def test_formats_that_run_code_stand_in_the_history_of_the_artifact(worker: Worker, root: StorageRoot) -> None:
    ordered(root, allow_formats=["pickle"], reason="needed")
    worker.publish(worker.take())
    assert events().get(type="artifact.published").details["allow_formats"] == ["pickle"]


def test_the_same_snapshot_under_another_name_is_one_artifact(worker: Worker, root: StorageRoot) -> None:
    an_artifact(root)
    ordered(root, revision="v1.0")
    given = worker.take()
    worker.publish(given, LATER, already_present=True, bytes_fetched=0)
    artifact = Artifact.objects.get()
    assert (artifact.revision, artifact.published_at, artifact.verified_at) == ("v1.0", START, START)
    assert (stored(given).artifact, stored(given).bytes_fetched) == (artifact, 0)
    assert told("artifact.published") == ["artifact.published"]


def test_one_that_was_read_again_is_verified_again(worker: Worker, root: StorageRoot) -> None:
    an_artifact(root)
    ordered(root)
    worker.publish(worker.take(), LATER, already_present=True, reread=True)
    assert Artifact.objects.get().verified_at == LATER


@pytest.mark.parametrize("state", ["damaged", "removed"])
def test_one_that_was_brought_anew_is_whole_again(worker: Worker, root: StorageRoot, state: str) -> None:
    an_artifact(root)
    Artifact.objects.update(state=state, damaged=["a"], removed_at=START)
    ordered(root)
    worker.publish(worker.take(), LATER)
    artifact = Artifact.objects.get()
    assert (artifact.state, artifact.damaged, artifact.removed_at) == ("published", [], None)
    assert (artifact.published_at, told("artifact.published")) == (LATER, ["artifact.published"] * 2)


@pytest.mark.parametrize("state", ["damaged", "removed", None])
def test_one_that_lies_there_unread_is_not_believed(worker: Worker, root: StorageRoot, state: str | None) -> None:
    """Whoever published it told nobody, or it was found damaged: nothing is said that was not observed."""
    if state is not None:
        an_artifact(root)
        Artifact.objects.update(state=state)
    ordered(root)
    assert worker.publish(worker.take(), LATER, already_present=True) == "queued"
    assert list(Artifact.objects.values_list("state", flat=True)) == ([state] if state else [])
    again = worker.take(LATER)
    assert isinstance(again.order, wire.AcquireOrder)
    assert again.order.reread
    assert worker.publish(again, LATER, already_present=True, reread=True) == "succeeded"
    assert Artifact.objects.get().state == "published"


def test_an_agent_that_never_reads_it_ends_the_job(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    ends = [worker.publish(worker.take(), already_present=True) for _ in range(5)]
    assert ends == ["queued"] * 4 + ["failed"]
    assert Job.objects.get().failure_code == "verification_failed"
    assert not Artifact.objects.exists()


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"snapshot": f"models/org/other/{COMMIT}"}, "published.snapshot"),
        ({"snapshot": "../../etc"}, "published.snapshot"),
        ({"manifest_sha256": ""}, "published.manifest_sha256"),
        ({"manifest_sha256": "x" * 64}, "published.manifest_sha256"),
        ({"bytes": 2**50 + 1}, "published.bytes"),
    ],
    ids=["another repository", "outside", "no digest", "no hex", "too large"],
)
def test_a_snapshot_that_is_not_what_was_ordered_is_refused(
    worker: Worker, root: StorageRoot, said: dict[str, Any], field: str
) -> None:
    ordered(root)
    given = worker.take()
    assert [error.field for error in refused(lambda: worker.publish(given, **said)).errors] == [field]
    assert (stored(given).state, stored(given).commit, Artifact.objects.count()) == ("running", "", 0)


def test_a_snapshot_of_another_commit_than_the_pinned_one_is_refused(worker: Worker, root: StorageRoot) -> None:
    """Field case 67."""
    ordered(root)
    given = worker.take()
    worker.tell(given, commit=COMMIT)
    assert [error.field for error in refused(lambda: worker.publish(given, commit=OTHER)).errors] == ["commit"]


@pytest.mark.parametrize("said", [{"commit": COMMIT}, {"commit": ""}], ids=["no snapshot", "no commit"])
def test_a_success_without_what_it_brought_is_refused(worker: Worker, root: StorageRoot, said: dict[str, Any]) -> None:
    ordered(root)
    given = worker.take()
    more: dict[str, Any] = {} if said["commit"] else {"published": published(given)}
    refused(lambda: worker.finish(given, outcome="succeeded", **said, **more))
    assert stored(given).state == "running"


def test_a_preflight_answers_and_brings_nothing(worker: Worker, root: StorageRoot) -> None:
    ordered(root, preflight_only=True)
    given = worker.take()
    found = wire.Preflight(files=3, bytes=10 * GIB, largest_file="a", largest_bytes=9 * GIB, gated=True, fits=False)
    refused(lambda: worker.publish(given))
    assert worker.finish(given, outcome="succeeded", commit=COMMIT, preflight=found) == "succeeded"
    job = stored(given)
    assert job.preflight is not None
    assert (job.commit, job.preflight["bytes"], job.preflight["fits"]) == (COMMIT, 10 * GIB, False)
    assert (job.artifact, Artifact.objects.count()) == (None, 0)


# Verification and removal.


def verified(worker: Worker, artifact: Artifact, **found: Any) -> str:
    """The agent reads the artifact again."""
    orders.verify(artifact, by=OPERATOR, now=LATER)
    said: dict[str, Any] = {"files": 3, "bytes": 10 * GIB}
    return worker.finish(worker.take(LATER), LATER, outcome="succeeded", verified=wire.Verified(**said | found))


def test_a_snapshot_that_is_still_right_is_verified(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    assert verified(worker, artifact) == "succeeded"
    artifact.refresh_from_db()
    assert (artifact.state, artifact.verified_at, artifact.published_at) == ("published", LATER, START)
    assert told(*ARTIFACT)[-1] == "artifact.verified"
    assert Job.objects.get(type=wire.VERIFY).verified == {
        "files": 3,
        "bytes": 10 * GIB,
        "damaged": [],
        "missing": False,
    }


def test_a_snapshot_with_wrong_bytes_is_damaged_until_it_is_right_again(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    verified(worker, artifact, damaged=["model.safetensors"])
    artifact.refresh_from_db()
    assert (artifact.state, artifact.damaged, artifact.verified_at) == ("damaged", ["model.safetensors"], START)
    assert events().get(type="artifact.damaged").details["damaged"] == ["model.safetensors"]
    verified(worker, artifact)
    artifact.refresh_from_db()
    assert (artifact.state, artifact.damaged) == ("published", [])


def test_a_snapshot_that_is_not_there_any_more_is_removed(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    verified(worker, artifact, missing=True)
    artifact.refresh_from_db()
    assert (artifact.state, artifact.removed_at) == ("removed", LATER)
    assert events().get(type="artifact.removed").details["found"] == "missing"


def test_a_verification_that_says_nothing_is_refused(worker: Worker, root: StorageRoot) -> None:
    orders.verify(an_artifact(root), by=OPERATOR, now=LATER)
    given = worker.take(LATER)
    refused(lambda: worker.finish(given, LATER, outcome="succeeded"))


def test_a_removed_snapshot_is_no_artifact_any_more(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    orders.remove(artifact, reason="disk is full", by=OPERATOR, now=LATER)
    assert worker.finish(worker.take(LATER), LATER, outcome="succeeded") == "succeeded"
    artifact.refresh_from_db()
    assert (artifact.state, artifact.removed_at) == ("removed", LATER)
    assert events().get(type="artifact.removed").details["reason"] == "disk is full"


def test_removing_what_a_verification_missed_is_told_once(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    orders.remove(artifact, reason="old", by=OPERATOR, now=LATER)
    orders.verify(artifact, by=OPERATOR, now=LATER + SECOND)
    at = LATER + 2 * SECOND
    worker.finish(worker.take(at), at, outcome="succeeded")
    worker.finish(worker.take(at), at, outcome="succeeded", verified=wire.Verified(files=0, bytes=0, missing=True))
    assert told("artifact.removed") == ["artifact.removed"]


# Failures.


def test_a_lasting_failure_ends_the_job_with_its_numbers(worker: Worker, root: StorageRoot) -> None:
    """Field case 61."""
    ordered(root)
    given = worker.take()
    assert worker.fail(given, "insufficient_capacity", LATER, numbers={"missing_bytes": GIB}) == "failed"
    job = stored(given)
    assert (job.failure_code, job.failure_numbers, job.spent) == ("insufficient_capacity", {"missing_bytes": GIB}, 0)
    assert job.finished_at == LATER
    event = events().get(type="job.failed")
    assert (event.details["failure_code"], event.details["failure_numbers"]) == (
        "insufficient_capacity",
        {"missing_bytes": GIB},
    )


def test_a_passing_failure_puts_it_back_with_a_pause_that_doubles(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    at, pauses = START, []
    for _ in range(4):
        given = worker.take(at)
        assert worker.fail(given, "stalled", at) == "queued"
        at = stored(given).not_before or at
        pauses.append((at - START).total_seconds())
    assert pauses == [30, 90, 210, 450]
    last = worker.take(at)
    assert (last.attempt, worker.fail(last, "stalled", at)) == (5, "failed")
    assert (stored(last).spent, told("job.put_back", "job.failed")[-2:]) == (5, ["job.put_back", "job.failed"])


def test_a_limited_rate_waits_as_told_and_spends_nothing(worker: Worker, root: StorageRoot) -> None:
    """Field case 65."""
    ordered(root)
    given = worker.take()
    assert worker.fail(given, "rate_limited", retry_after_seconds=3600) == "queued"
    job = stored(given)
    assert (job.not_before, job.spent) == (START + timedelta(hours=1), 0)


@pytest.mark.parametrize("seconds", [10**9, 0.001], ids=["for ever", "at once"])
def test_a_limited_rate_waits_within_bounds(worker: Worker, root: StorageRoot, seconds: float) -> None:
    ordered(root)
    given = worker.take()
    worker.fail(given, "rate_limited", retry_after_seconds=seconds)
    waits = (stored(given).not_before or START) - START
    assert waits == (timedelta(hours=24) if seconds > 1 else timedelta(seconds=30))


def test_an_unproven_root_ends_the_job_and_marks_nothing_else(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    assert worker.fail(worker.take(), "root_unverified") == "failed"
    root.refresh_from_db()
    assert root.state == "verified"


def test_a_failure_may_bring_the_figures_of_a_preflight(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    failure = wire.Failure(code="insufficient_capacity", detail="full")
    worker.finish(given, outcome="failed", failure=failure, preflight=wire.Preflight(files=1, bytes=5))
    assert (stored(given).preflight or {})["bytes"] == 5


def test_a_release_puts_the_job_back_at_once_and_spends_nothing(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    assert worker.finish(given, outcome="released") == "queued"
    assert (stored(given).not_before, stored(given).spent) == (None, 0)
    assert worker.take().attempt == 2


@pytest.mark.parametrize("outcome", ["released", "cancelled"])
def test_a_job_that_shall_stop_is_cancelled_however_its_agent_stops(
    worker: Worker, root: StorageRoot, outcome: str
) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.finish(given, outcome=outcome) == "cancelled"


def test_an_agent_that_stops_a_job_that_nobody_cancelled_lets_it_go(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    assert worker.finish(worker.take(), outcome="cancelled") == "queued"


@pytest.mark.parametrize(
    ("code", "state"), [("stalled", "cancelled"), ("not_found", "failed")], ids=["passing", "lasting"]
)
def test_a_job_that_shall_stop_and_fails_is_not_tried_again(
    worker: Worker, root: StorageRoot, code: wire.FailureCode, state: str
) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.fail(given, code) == state
    assert stored(given).failure_code == code


def test_a_job_that_was_done_before_it_was_told_to_stop_succeeded(worker: Worker, root: StorageRoot) -> None:
    job = ordered(root)
    given = worker.take()
    jobs.cancel(job, reason="", by=OPERATOR, now=START)
    assert worker.publish(given) == "succeeded"


# Once, and under the right lease.


def test_a_result_that_is_told_again_changes_nothing(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    given = worker.take()
    before = [worker.publish(given), told()]
    assert [worker.publish(given, LATER), told()] == before
    assert Artifact.objects.get().published_at == START


def test_a_failure_that_is_told_again_spends_no_other_attempt(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    given = worker.take()
    assert [worker.fail(given, "stalled"), worker.fail(given, "stalled", LATER)] == ["queued", "queued"]
    assert (stored(given).spent, stored(given).not_before) == (1, START + 30 * SECOND)


def test_it_changes_nothing_either_while_the_next_attempt_runs(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    worker.fail(given, "stalled")
    again = worker.take(LATER)
    assert worker.fail(given, "stalled", LATER) == "running"
    assert stored(again).lease_id == again.lease_id


def test_a_late_result_of_an_older_lease_is_refused(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    old = worker.take()
    new = worker.restart()
    again = new.take(LATER)
    refused(lambda: worker.publish(old, LATER), Code.LEASE_LOST)
    assert not Artifact.objects.exists()
    new.publish(again, LATER)
    refused(lambda: worker.publish(old, LATER), Code.LEASE_LOST)
    assert Artifact.objects.count() == 1


def test_a_result_after_the_leases_formal_end_counts(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    ordered(root)
    given = worker.take()
    assert worker.publish(given, START + settings.JOB_LEASE + timedelta(hours=3)) == "succeeded"


def test_a_lease_that_never_was_is_lost(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    refused(lambda: worker.finish(given, outcome="released", lease_id=uuid4()), Code.LEASE_LOST)
    Job.objects.all().delete()
    refused(lambda: worker.finish(given, outcome="released"), Code.LEASE_LOST)


def test_another_nodes_result_does_not_count(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    refused(lambda: Worker(a_server("server02")).publish(given), Code.LEASE_LOST)


@pytest.mark.parametrize(
    ("verb", "code"),
    [(control.disable, Code.NODE_DISABLED), (control.retire, Code.NODE_RETIRED)],
    ids=["disabled", "retired"],
)
def test_a_node_that_was_taken_out_a_moment_ago_tells_no_result(
    worker: Worker, root: StorageRoot, verb: Any, code: Code
) -> None:
    ordered(root)
    given = worker.take()
    verb(root.node, reason="sold", by=OPERATOR, now=START)
    refused(lambda: worker.publish(given), code)
    assert stored(given).state == "running"


# Quarantine.


def bad(number: int) -> wire.Quarantined:
    """A file with wrong bytes."""
    return wire.Quarantined(
        path=f"model-{number}.safetensors",
        size_bytes=GIB,
        expected="a" * 64,
        found="b" * 64,
        reason="digest_mismatch",
        location=f"job/{number}",
    )


def test_files_with_wrong_bytes_are_listed_and_told_in_one_event(worker: Worker, root: StorageRoot) -> None:
    """Field case 63."""
    ordered(root)
    given = worker.take()
    failure = wire.Failure(code="verification_failed", detail="wrong bytes")
    worker.finish(given, outcome="failed", commit=COMMIT, failure=failure, quarantined=[bad(n) for n in range(12)])
    first = QuarantinedFile.objects.earliest("pk")
    assert (first.path, first.expected, first.found, first.reason) == (bad(0).path, "a" * 64, "b" * 64, bad(0).reason)
    assert (first.node_id, first.root_id, first.job_id, first.commit) == (root.node_id, root.pk, given.id, COMMIT)
    event = events().get(type="artifact.file_quarantined")
    assert (event.details["count"], len(event.details["files"]), QuarantinedFile.objects.count()) == (12, 10, 12)


def test_one_job_lists_only_so_many(worker: Worker, root: StorageRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "KEPT_OF_A_JOB", 3)
    ordered(root)
    for _ in range(2):
        given = worker.take(LATER)
        failure = wire.Failure(code="rate_limited", detail="wait")
        worker.finish(given, START, outcome="failed", failure=failure, quarantined=[bad(1), bad(2)])
    assert QuarantinedFile.objects.count() == 3
