"""Snapshots that were read again or removed, and files that were put in quarantine."""

from typing import Any

import pytest

from agent import wire
from artifacts import orders, quarantine
from artifacts.models import Artifact, Job, QuarantinedFile, StorageRoot
from nodes.audit import events
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    OPERATOR,
    SECOND,
    Worker,
    an_artifact,
    ordered,
)
from tests.artifacts.refusals import refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND
ARTIFACT = ("artifact.published", "artifact.verified", "artifact.damaged", "artifact.removed")


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
