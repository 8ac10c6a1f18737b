"""Asking for work: the oldest job that is due, under a lease, with all that its order needs."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agent import wire
from agent.protocol import Code
from artifacts import claims, orders, storage
from artifacts.models import Artifact, Job, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Refused
from tests.artifacts.ordering import (
    COMMIT,
    GIB,
    MANIFEST,
    OPERATOR,
    ROOT,
    SECOND,
    TYPES,
    Worker,
    a_root,
    a_server,
    an_artifact,
    ordered,
    proof,
)
from tests.nodes.hearing import START, speaker, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


def test_the_oldest_job_is_given_under_a_lease(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    first, _ = ordered(root), ordered(root, "org/other", now=START + SECOND)
    given = worker.take(LATER)
    job = Job.objects.get(pk=first.pk)
    assert (given.id, given.attempt, given.lease_id) == (job.pk, 1, job.lease_id)
    assert given.lease_seconds == settings.JOB_LEASE.total_seconds()
    assert (job.state, job.boot_id, job.started_at) == ("running", worker.boot_id, LATER)
    assert job.lease_expires_at == LATER + settings.JOB_LEASE
    event = events().get(type="job.started")
    assert (event.actor_kind, event.details["attempt"]) == ("node", 1)


def test_the_order_says_all_that_is_needed_to_bring_the_snapshot(worker: Worker, root: StorageRoot) -> None:
    said: dict[str, Any] = {
        "allow_patterns": ["*.safetensors"],
        "ignore_patterns": ["original/*"],
        "allow_formats": ["pickle"],
        "reason": "an old model",
    }
    ordered(root, revision=COMMIT, **said)
    assert worker.take().order == wire.AcquireOrder(
        root_id=root.pk,
        path=ROOT,
        repo_id="org/model",
        revision=COMMIT,
        commit=COMMIT,
        allow_patterns=["*.safetensors"],
        ignore_patterns=["original/*"],
        allow_formats=["pickle"],
        reread=True,
        reserve_bytes=50 * GIB,
    )


def test_a_snapshot_that_is_known_to_be_whole_need_not_be_read_again(worker: Worker, root: StorageRoot) -> None:
    an_artifact(root)
    for state, reread in (("published", False), ("damaged", True), ("removed", True)):
        Artifact.objects.update(state=state)
        ordered(root, now=LATER)
        given = worker.take(LATER)
        assert isinstance(given.order, wire.AcquireOrder)
        assert (state, given.order.reread) == (state, reread)
        worker.fail(given, "not_found", LATER)


@pytest.mark.parametrize(
    ("kind", "order"), [(wire.VERIFY, wire.VerifyOrder), (wire.REMOVE, wire.RemoveOrder)], ids=["verify", "remove"]
)
def test_an_order_about_a_snapshot_says_which(
    worker: Worker, root: StorageRoot, kind: wire.JobType, order: type[wire.VerifyOrder] | type[wire.RemoveOrder]
) -> None:
    artifact = an_artifact(root)
    act = orders.verify if kind == wire.VERIFY else orders.remove
    act(artifact, reason="to see", by=OPERATOR, now=LATER)
    assert worker.take(LATER).order == order(
        root_id=root.pk,
        path=ROOT,
        snapshot=f"models/org/model/{COMMIT}",
        repo_id="org/model",
        commit=COMMIT,
        manifest_sha256=MANIFEST,
    )


def test_nothing_is_given_where_nothing_waits(worker: Worker) -> None:
    reply = worker.claim()
    assert (reply.job, reply.look_again_seconds) == (None, 300)


def test_an_agent_that_asks_for_no_job_gets_none(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    assert worker.claim(types=[]).job is None


def test_a_job_that_this_agent_does_not_do_waits_and_another_is_given(worker: Worker, root: StorageRoot) -> None:
    artifact = an_artifact(root)
    ordered(root, "org/other")
    verification, _ = orders.verify(artifact, by=OPERATOR, now=LATER)
    given = worker.claim(LATER, types=[wire.VERIFY, "artifact.unheard-of.v7"]).job
    assert given is not None
    assert given.id == verification.pk


def test_jobs_of_a_root_that_is_not_proven_wait_and_others_are_given(worker: Worker, root: StorageRoot) -> None:
    other = a_root(root.node, "/data/artifacts/lab")
    ordered(root)
    due = ordered(other, now=LATER)
    given = worker.claim(LATER, proofs=[proof(root, fault="marker_missing")]).job
    assert given is not None
    assert given.id == due.pk


def test_a_job_of_another_node_is_not_given(root: StorageRoot) -> None:
    ordered(root)
    other = a_root(a_server("server02"))
    assert Worker(other.node).claim().job is None


def test_a_job_pauses_after_a_failure(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    worker.fail(worker.take(), "stalled")
    reply = worker.claim(START + 10 * SECOND)
    assert (reply.job, reply.look_again_seconds) == (None, 20)
    assert worker.take(START + 30 * SECOND).attempt == 2


@pytest.mark.parametrize(
    ("verb", "code"),
    [(control.disable, Code.NODE_DISABLED), (control.retire, Code.NODE_RETIRED)],
    ids=["disabled", "retired"],
)
def test_a_node_that_was_taken_out_a_moment_ago_gets_no_job(
    worker: Worker, root: StorageRoot, verb: Any, code: Code
) -> None:
    ordered(root)
    verb(root.node, reason="sold", by=OPERATOR, now=START)
    with pytest.raises(Refused) as caught:
        worker.claim()
    assert caught.value.code == code
    assert Job.objects.get().state == "queued"
    assert told("node.refused") == ["node.refused"]


def statements(worker: Worker, **said: Any) -> int:
    """How many statements a claim costs, less those that open and close its transaction."""
    words: dict[str, Any] = {"boot_id": worker.boot_id, "types": TYPES}
    message, by = wire.Claim(**words | said), speaker(worker.node)
    with CaptureQueriesContext(connection) as asked:
        claims.claim(message, by=by, now=LATER)
    return len([query for query in asked if "SAVEPOINT" not in query["sql"]])


def test_a_claim_costs_few_statements_however_much_there_is(worker: Worker, root: StorageRoot) -> None:
    for number in range(5):
        ordered(root, f"org/model-{number}")
        a_root(root.node, f"/data/artifacts/{number}", proven=False)
    proofs = [proof(each, approved=True) for each in StorageRoot.objects.all()]
    looks, tells = 4, 4  # node, heartbeat, roots, jobs; four to tell something in the history
    pays = 1  # what a node tells by itself counts against its allowance; what was ordered does not
    assert statements(worker, types=[wire.VERIFY]) == looks + 1  # whose marker the new roots may replace
    assert statements(worker, types=[], proofs=proofs) == looks + 1 + tells + pays  # all roots at once
    assert statements(worker) == looks + 1 + tells + 1 + 1  # the job, whether it is here already, that nothing waits
    assert statements(worker) == looks + 1 + 1  # the same job, another lease


def test_a_root_that_waits_names_the_retired_ones_of_its_folder(root: StorageRoot) -> None:
    storage.retire(root, reason="a new one", by=OPERATOR, now=START)
    elsewhere = a_root(root.node, f"{ROOT}-2")
    storage.retire(elsewhere, reason="another folder", by=OPERATOR, now=START)
    fresh = a_root(root.node, proven=False)
    (told,) = Worker(root.node).claim().roots
    assert (told.root_id, told.approve, told.replaces) == (fresh.pk, True, [root.pk])


def test_a_root_that_is_proven_names_none(root: StorageRoot) -> None:
    storage.retire(root, reason="a new one", by=OPERATOR, now=START)
    a_root(root.node)
    (told,) = Worker(root.node).claim().roots
    assert (told.approve, told.replaces) == (False, [])
