"""Half-done files are not deleted at an operator's word while somebody needs them, or where nobody would do it."""

from typing import Any

import pytest

from agent import wire
from agent.protocol import Code
from artifacts import half_done, storage
from artifacts.models import Job, StorageRoot
from nodes import control
from nodes.callers import Caller, Refused
from tests.artifacts.leaving import LATER, ask, look, stopped
from tests.artifacts.ordering import COMMIT, OPERATOR, SECOND, Worker, ordered, proof
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db


@pytest.fixture
def left(root: StorageRoot, worker: Worker) -> Job:
    """A job that failed, and whose files lie there by its agent's word."""
    job = stopped(root, worker)
    look(worker, root, job)
    return job


def refusal(job: Job, by: Caller = OPERATOR) -> Refused:
    """Why it is not done."""
    with pytest.raises(Refused) as caught:
        half_done.forget(job, by=by, now=LATER)
    assert told("job.forget_requested") == []
    return caught.value


def test_a_job_that_waits_is_refused_with_what_to_do(root: StorageRoot) -> None:
    refused = refusal(ordered(root))
    assert refused.code is Code.STATE_CONFLICT
    assert "waits and goes on with its half-done files. Cancel it first" in refused.detail


def test_a_job_that_runs_is_refused_with_what_to_do(root: StorageRoot, worker: Worker) -> None:
    job = ordered(root)
    worker.take()
    assert "runs and works on these files. Cancel it first" in refusal(job).detail


def test_a_job_that_succeeded_is_refused_with_what_to_do(root: StorageRoot, worker: Worker) -> None:
    job = ordered(root)
    worker.publish(worker.take())
    assert "remove the artifact" in refusal(job).detail


def test_a_job_that_left_nothing_is_refused(root: StorageRoot, worker: Worker) -> None:
    job = stopped(root, worker)
    look(worker, root)
    assert "nothing half done of artifact.acquire.v1 org/model lies on server01" in refusal(job).detail


@pytest.mark.parametrize("fault", ["marker_missing", "overdue"])
def test_where_the_root_is_lost_nobody_claims_to_know_what_a_job_left(
    root: StorageRoot, worker: Worker, fault: wire.RootFault
) -> None:
    job = stopped(root, worker)
    look(worker, root, proofs=[proof(root, fault=fault)])
    detail = refusal(job).detail
    assert "is not verified: nobody knows what artifact.acquire.v1 org/model left half done there" in detail
    assert "nothing half done" not in detail


def test_an_auditor_gives_back_nothing(left: Job, auditor: Caller) -> None:
    assert refusal(left, auditor).code is Code.FORBIDDEN


@pytest.mark.parametrize(
    ("again", "refused"),
    [
        ({}, True),
        ({"revision": COMMIT}, True),
        ({"revision": "v2"}, False),
        ({"revision": "f" * 40}, False),
        ({"ignore_patterns": ["*.bin"]}, False),
        ({"repo_id": "org/other"}, False),
        ({"preflight_only": True}, False),
    ],
    ids=["the same", "its commit", "another revision", "another commit", "other files", "another model", "a preflight"],
)
def test_another_order_that_may_go_on_with_these_files_stands_against_it(
    left: Job, root: StorageRoot, again: dict[str, Any], refused: bool
) -> None:
    other = ordered(root, **{"repo_id": "org/model"} | again, now=LATER)
    if refused:
        assert f"The job {other.pk} of the same waits" in refusal(left).detail
    else:
        ask(left)


def test_an_order_of_a_branch_that_has_moved_on_does_not(left: Job, root: StorageRoot, worker: Worker) -> None:
    ordered(root, now=LATER)
    worker.tell(worker.take(LATER), LATER, commit="f" * 40)
    ask(left)


def test_an_order_that_runs_and_has_told_no_commit_yet_may_go_on_with_them(
    left: Job, root: StorageRoot, worker: Worker
) -> None:
    other = ordered(root, revision="v2", now=LATER)
    given = worker.take(LATER)
    assert f"The job {other.pk} of the same runs" in refusal(left).detail
    worker.tell(given, LATER, commit="f" * 40)
    ask(left)


@pytest.mark.parametrize("before", ["not asked for", "asked for", "gone"])
@pytest.mark.parametrize("what", ["root", "node"])
def test_where_nobody_would_delete_them_the_folder_is_named(
    left: Job, root: StorageRoot, worker: Worker, what: str, before: str
) -> None:
    """Whatever was asked for before."""
    if before != "not asked for":
        ask(left)
    if before == "gone":
        look(worker, root)
    if what == "root":
        storage.retire(root, reason="sold", by=OPERATOR, now=LATER)
    else:
        control.retire(root.node, reason="sold", by=OPERATOR, now=LATER)
    with pytest.raises(Refused) as caught:
        ask(left, LATER + SECOND)
    assert caught.value.code is Code.STATE_CONFLICT
    assert "was retired, and no agent deletes anything there" in caught.value.detail
    assert f"/mnt/cache/appdata/artifacts/models/.partial/{left.pk}" in caught.value.detail
