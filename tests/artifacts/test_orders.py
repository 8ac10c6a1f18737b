"""Ordering jobs: how an order joins one to the same end, and where it is refused."""

import hashlib
from typing import Any

import pytest

from agent import wire
from agent.acquire import plan
from agent.protocol import Code
from artifacts import jobs, orders, storage
from artifacts.models import Artifact, Job, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Caller
from nodes.models import Node
from tests.artifacts.ordering import (
    COMMIT,
    OPERATOR,
    SECOND,
    Worker,
    a_root,
    a_server,
    an_artifact,
    proof,
)
from tests.artifacts.refusals import fields, refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
USUAL: dict[str, Any] = {"repo_id": "org/model", "now": START}
LATER = START + 60 * SECOND


def acquire(root: StorageRoot, by: Caller = OPERATOR, **said: Any) -> tuple[Job, bool]:
    """Order the usual snapshot, or as told."""
    return orders.acquire(root, **USUAL | {"by": by} | said)


def test_an_order_waits_for_its_node_which_hears_of_it(root: StorageRoot) -> None:
    Node.objects.update(work_waits=False)
    job, new = acquire(root)
    assert (new, job.state, job.type, job.revision, job.commit) == (True, "queued", wire.ACQUIRE, "main", "")
    assert (job.node_id, job.root_id, job.created_by) == (root.node_id, root.pk, "admin token")
    assert Node.objects.get().work_waits


def test_an_order_is_told_with_what_is_special_about_it(root: StorageRoot) -> None:
    job, _ = acquire(root, allow_patterns=["*.bin"], allow_formats=["pickle"], reason="old model, read in a sandbox")
    event = events().get(type="job.ordered")
    assert (event.about_kind, event.about_id) == ("job", str(job.pk))
    assert event.details == {
        "job_type": wire.ACQUIRE,
        "repo_id": "org/model",
        "revision": "main",
        "commit": "",
        "root": root.container_path,
        "allow_patterns": ["*.bin"],
        "allow_formats": ["pickle"],
        "reason": "old model, read in a sandbox",
    }


def test_a_second_order_of_the_same_snapshot_joins_the_first(root: StorageRoot) -> None:
    first, _ = acquire(root, allow_patterns=["b", "a"])
    assert acquire(root, allow_patterns=["a", "b", "a"], now=LATER) == (first, False)
    assert told("job.ordered") == ["job.ordered"]


def test_an_order_joins_one_that_runs(root: StorageRoot) -> None:
    first, _ = acquire(root)
    Worker(root.node).take()
    assert acquire(root) == (first, False)


@pytest.mark.parametrize(
    "other",
    [{"revision": "dev"}, {"repo_id": "org/other"}, {"allow_patterns": ["*.json"]}, {"preflight_only": True}],
    ids=str,
)
def test_an_order_of_something_else_is_another_job(root: StorageRoot, other: dict[str, Any]) -> None:
    first, _ = acquire(root)
    second, new = acquire(root, **other)
    assert (new, second == first) == (True, False)


def test_the_same_snapshot_in_another_root_is_another_job(root: StorageRoot) -> None:
    acquire(root)
    assert acquire(a_root(root.node, "/data/artifacts/lab"))[1]


def test_an_order_that_lets_other_formats_in_does_not_join(root: StorageRoot) -> None:
    first, _ = acquire(root)
    again: dict[str, Any] = {"allow_formats": ["pickle"], "reason": "needed"}
    assert str(first.pk) in refused(lambda: acquire(root, **again), Code.STATE_CONFLICT).detail


def test_an_order_does_not_join_one_that_is_told_to_stop(root: StorageRoot) -> None:
    first, _ = acquire(root)
    Worker(root.node).take()
    jobs.cancel(first, reason="", by=OPERATOR, now=LATER)
    assert "being cancelled" in refused(lambda: acquire(root), Code.STATE_CONFLICT).detail


def test_what_has_ended_can_be_ordered_anew(root: StorageRoot) -> None:
    first, _ = acquire(root)
    worker = Worker(root.node)
    worker.fail(worker.take(), "not_found")
    assert acquire(root)[0] != first


def test_a_node_whose_agent_does_not_do_such_jobs_is_not_asked() -> None:
    root = a_root(a_server(types=[wire.VERIFY]))
    refusal = refused(lambda: acquire(root), Code.JOB_TYPE_UNSUPPORTED)
    assert wire.ACQUIRE in refusal.detail
    assert wire.VERIFY in refusal.detail


@pytest.mark.parametrize("facts", [None, {}, {"agent": {}}, {"agent": {"job_types": None}}], ids=str)
def test_a_node_that_has_not_told_what_it_can_do_is_not_asked(root: StorageRoot, facts: Any) -> None:
    Node.objects.filter(pk=root.node_id).update(facts=facts)
    refused(lambda: acquire(root), Code.JOB_TYPE_UNSUPPORTED)


@pytest.mark.parametrize("verb", [control.disable, control.retire], ids=["disabled", "retired"])
def test_a_node_out_of_service_gets_no_job(root: StorageRoot, verb: Any) -> None:
    verb(root.node, reason="sold", by=OPERATOR, now=START)
    refused(lambda: acquire(root), Code.STATE_CONFLICT)


def test_a_root_that_is_not_proven_takes_no_job() -> None:
    root = a_root(a_server(), proven=False)
    refused(lambda: acquire(root), Code.ROOT_UNVERIFIED)


def test_a_root_that_lost_its_proof_takes_no_job_and_says_why(root: StorageRoot) -> None:
    Worker(root.node).claim(proofs=[proof(root, fault="marker_missing", detail="the disk is away")])
    assert "the disk is away" in refused(lambda: acquire(root), Code.ROOT_UNVERIFIED).detail


def test_a_retired_root_takes_no_job(root: StorageRoot) -> None:
    storage.retire(root, reason="gone", by=OPERATOR, now=START)
    refused(lambda: acquire(root), Code.STATE_CONFLICT)


def test_only_so_many_jobs_wait_for_one_node(root: StorageRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MAX_WAITING", 1)
    first, _ = acquire(root)
    refused(lambda: acquire(root, repo_id="org/other"), Code.STATE_CONFLICT)
    assert acquire(root) == (first, False)


def test_an_auditor_orders_nothing(root: StorageRoot, auditor: Caller) -> None:
    refused(lambda: acquire(root, by=auditor), Code.FORBIDDEN)


@pytest.fixture
def artifact(root: StorageRoot) -> Artifact:
    """A published snapshot."""
    return an_artifact(root)


def test_a_snapshot_can_be_verified_again(artifact: Artifact) -> None:
    job, new = orders.verify(artifact, by=OPERATOR, now=LATER)
    assert (new, job.type, job.artifact_id, job.commit) == (True, wire.VERIFY, artifact.pk, COMMIT)
    assert (job.root_id, job.repo_id) == (artifact.root_id, artifact.repo_id)


def test_a_snapshot_can_be_removed_for_a_reason(artifact: Artifact) -> None:
    job, _ = orders.remove(artifact, reason="disk is full", by=OPERATOR, now=LATER)
    assert (job.type, job.reason) == (wire.REMOVE, "disk is full")
    assert fields(refused(lambda: orders.remove(artifact, reason="", by=OPERATOR, now=LATER))) == ["reason"]


def test_the_same_about_one_artifact_joins(artifact: Artifact) -> None:
    first, _ = orders.verify(artifact, by=OPERATOR, now=LATER)
    assert orders.verify(artifact, by=OPERATOR, now=LATER) == (first, False)
    assert orders.remove(artifact, reason="gone", by=OPERATOR, now=LATER)[1]


def test_an_artifact_that_was_removed_is_left_alone(artifact: Artifact) -> None:
    Artifact.objects.update(state="removed")
    refused(lambda: orders.verify(artifact, by=OPERATOR, now=LATER), Code.STATE_CONFLICT)


def test_an_order_about_no_snapshot_is_refused(root: StorageRoot) -> None:
    said: dict[str, Any] = {"root": root, "repo_id": "org/model", "revision": "main", "by": OPERATOR, "now": START}
    assert fields(refused(lambda: orders.order(wire.REMOVE, **said))) == ["artifact"]
    other: Any = "artifact.burn.v1"
    assert fields(refused(lambda: orders.order(other, **said))) == ["type"]


@pytest.mark.parametrize(
    ("allow", "ignore", "said"),
    [(["b", "a", "a"], ["c"], b'[["a","b"],["c"]]'), (["\u00e9"], [], b'[["\\u00e9"],[]]')],
    ids=["plain", "beyond ASCII"],
)
def test_the_selection_is_a_digest_of_the_patterns(allow: list[str], ignore: list[str], said: bytes) -> None:
    assert orders.selection_digest(allow, ignore) == hashlib.sha256(said).hexdigest()
    assert plan.selection_digest(allow, ignore) == hashlib.sha256(said).hexdigest(), "as the agent computes it"


def test_all_files_are_no_selection() -> None:
    assert orders.selection_digest([], []) == ""
