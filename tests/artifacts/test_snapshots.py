"""What a job that succeeded brought: a snapshot that is an artifact, or the answer of a preflight."""

from typing import Any

import pytest

from agent import wire
from artifacts import orders
from artifacts.models import Artifact, Job, StorageRoot
from nodes.audit import events
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    MANIFEST,
    SECOND,
    Worker,
    an_artifact,
    ordered,
    published,
    stored,
)
from tests.artifacts.refusals import refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND
OTHER = "beef" + "0" * 36


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
        ({"bytes_fetched": 2**63 - 1}, "published.bytes_fetched"),
    ],
    ids=["another repository", "outside", "no digest", "no hex", "too large", "too much"],
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
