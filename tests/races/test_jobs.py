"""Jobs under real concurrency: agents, operators and the clock that meet on one job."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings

from agent import wire
from agent.protocol import Code
from artifacts import expiry, jobs, orders, storage
from artifacts.models import Artifact, Job, StorageRoot
from nodes import control
from nodes.audit import broken, events, verify
from nodes.callers import Refused
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, Worker, a_root, a_server, ordered, proof
from tests.nodes.hearing import START, told
from tests.races.racing import race

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5
LATER = START + SECOND


def servers() -> list[StorageRoot]:
    """One proven root on each of a few servers: a round each."""
    return [a_root(a_server(f"server{number}")) for number in range(ROUNDS)]


def stored(job: Job | wire.Job) -> Job:
    """The job as it stands."""
    return Job.objects.get(pk=job.id)


def of(root: StorageRoot, *types: str) -> list[str]:
    """What the history tells of the root's node, of these types."""
    mine = events().filter(node_id=root.node_id, type__in=types).order_by("position")
    return [event.type for event in mine]


def test_of_two_agents_with_one_identity_one_lease_counts() -> None:
    """Field case 76: both are given the job, and only the last one may go on with it."""
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        replies: list[Any] = race(*[partial(worker.claim, LATER)] * 2)
        given = [reply.job for reply in replies]
        assert {each.id for each in given} == {job.pk}
        assert len({each.lease_id for each in given}) == 2
        outcomes = race(*[partial(worker.publish, each, LATER) for each in given])
        assert sorted(map(str, outcomes)) == sorted([Code.LEASE_LOST, "succeeded"])
        assert of(root, "job.started", "artifact.published") == ["job.started", "artifact.published"]
    assert Artifact.objects.count() == ROUNDS
    assert not broken(verify())


def test_two_claims_and_two_jobs_start_one_job() -> None:
    for root in servers():
        ordered(root), ordered(root, "org/other")
        race(*[partial(Worker(root.node).claim, LATER)] * 4)
        assert Job.objects.filter(node=root.node, state="running").count() == 1
        assert of(root, "job.started") == ["job.started"]


def test_two_orders_of_one_snapshot_are_one_job() -> None:
    for root in servers():
        order = partial(orders.acquire, root, repo_id="org/model", by=OPERATOR, now=START)
        outcomes: list[Any] = race(*[order] * 4)
        assert sorted(new for _, new in outcomes) == [False, False, False, True]
        assert len({job.pk for job, _ in outcomes}) == 1
        assert of(root, "job.ordered") == ["job.ordered"]


def test_a_result_that_meets_the_end_of_its_lease_counts_whole_or_not_at_all() -> None:
    over = START + settings.JOB_LEASE + SECOND
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        given = worker.take()
        outcome, _ = race(partial(worker.publish, given, over), partial(expiry.expire, now=over))
        found, published = stored(job), Artifact.objects.filter(root=root).count()
        if outcome == "succeeded":
            assert (found.state, found.spent, published) == ("succeeded", 0, 1)
        else:
            assert (outcome, found.state, found.spent, published) == (Code.LEASE_LOST, "queued", 1, 0)
    assert not broken(verify())


def test_a_word_that_meets_the_end_of_its_lease_keeps_it_or_has_lost_it() -> None:
    over = START + settings.JOB_LEASE + SECOND
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        given = worker.take()
        tell = partial(worker.tell, given, over, commit=COMMIT, bytes_total=GIB, bytes_done=1)
        outcome, _ = race(tell, partial(expiry.expire, now=over))
        found = stored(job)
        if outcome is Code.LEASE_LOST:
            assert (found.state, found.lease_expires_at) == ("queued", None)
        else:
            assert (found.state, found.lease_expires_at) == ("running", over + settings.JOB_LEASE)


def test_four_looks_at_once_spend_one_attempt() -> None:
    """Field case 83."""
    over = START + settings.JOB_LEASE + SECOND
    roots = servers()
    for root in roots:
        ordered(root)
        Worker(root.node).take()
    outcomes: list[Any] = race(*[partial(expiry.expire, now=over)] * 4)
    assert sum(expired.lost for expired in outcomes) == ROUNDS
    assert set(Job.objects.values_list("state", "spent")) == {("queued", 1)}
    assert told("job.put_back") == ["job.put_back"] * ROUNDS
    assert not broken(verify())


def test_four_looks_at_once_call_for_a_pause_that_is_over() -> None:
    for root in servers():
        ordered(root)
        worker = Worker(root.node)
        worker.fail(worker.take(), "stalled")
        worker.claim(LATER)
    race(*[partial(expiry.expire, now=START + timedelta(minutes=1))] * 4)
    assert set(Job.objects.values_list("not_before", "node__work_waits")) == {(None, True)}


def test_a_cancellation_that_meets_a_claim_ends_the_job_or_is_heard_by_its_agent() -> None:
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        reply: Any
        reply, _ = race(partial(worker.claim, LATER), partial(jobs.cancel, job, reason="no", by=OPERATOR, now=LATER))
        found = stored(job)
        if reply.job is None:
            assert (found.state, found.attempt) == ("cancelled", 0)
        else:
            assert (found.state, found.cancel_requested_at) == ("running", LATER)
            assert worker.tell(reply.job, LATER).cancel


def test_a_cancellation_that_meets_the_result_does_not_undo_it() -> None:
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        given = worker.take()
        outcomes = race(
            partial(worker.publish, given, LATER), partial(jobs.cancel, job, reason="no", by=OPERATOR, now=LATER)
        )
        assert outcomes[0] == "succeeded"
        assert stored(job).state == "succeeded"


def test_a_late_result_of_an_older_lease_beside_that_of_the_newer_leaves_one_artifact() -> None:
    for root in servers():
        ordered(root)
        old = Worker(root.node)
        first = old.take()
        new = old.restart()
        second = new.take(LATER)
        outcomes = race(partial(old.publish, first, LATER), partial(new.publish, second, LATER))
        assert outcomes == [Code.LEASE_LOST, "succeeded"]
        assert Artifact.objects.filter(root=root).count() == 1


def test_one_result_told_twice_at_once_counts_once() -> None:
    for root in servers():
        ordered(root)
        worker = Worker(root.node)
        given = worker.take()
        assert race(*[partial(worker.publish, given, LATER)] * 3) == ["succeeded"] * 3
        assert of(root, "artifact.published", "job.succeeded") == ["artifact.published", "job.succeeded"]


def test_a_commit_is_pinned_once_by_words_at_once() -> None:
    for root in servers():
        job = ordered(root)
        worker = Worker(root.node)
        given = worker.take()
        commits = [COMMIT, "beef" + "0" * 36]
        outcomes = race(*[partial(worker.tell, given, LATER, commit=commit) for commit in commits])
        assert outcomes.count(Code.INVALID) == 1
        assert stored(job).commit in commits
        assert of(root, "job.pinned") == ["job.pinned"]


def test_two_registrations_of_one_folder_make_one_root() -> None:
    for number in range(ROUNDS):
        node = a_server(f"server{number}")
        outcomes = race(*[partial(a_root, node, proven=False)] * 3)
        assert outcomes.count(Code.INVALID) == 2
        assert StorageRoot.objects.filter(node=node).count() == 1


def test_an_order_that_meets_its_roots_retirement_never_waits_in_vain() -> None:
    for root in servers():
        race(
            partial(orders.acquire, root, repo_id="org/model", by=OPERATOR, now=LATER),
            partial(storage.retire, root, reason="gone", by=OPERATOR, now=LATER),
        )
        assert not Job.objects.filter(root=root, state__in=Job.ACTIVE).exists()


def test_a_claim_that_meets_its_nodes_retirement_starts_nothing_afterwards() -> None:
    for root in servers():
        job = ordered(root)
        outcomes: list[Any] = race(
            partial(Worker(root.node).claim, LATER),
            partial(control.retire, root.node, reason="sold", by=OPERATOR, now=LATER),
        )
        given = outcomes[0] is not Code.NODE_RETIRED and outcomes[0].job is not None
        assert stored(job).state == ("running" if given else "queued")
        expiry.expire(now=LATER + settings.JOB_LEASE + SECOND)
        assert stored(job).state == "cancelled"


def test_proofs_that_contradict_each_other_leave_a_history_that_adds_up() -> None:
    for root in servers():
        worker = Worker(root.node)
        race(
            partial(worker.claim, LATER, types=[], proofs=[proof(root)]),
            partial(worker.claim, LATER, types=[], proofs=[proof(root, fault="marker_missing")]),
        )
        root.refresh_from_db()
        tells = of(root, "storage_root.verified", "storage_root.unverified")
        assert tells[-1] == f"storage_root.{root.state}"
    assert not broken(verify())


def test_everybody_at_once_on_one_node_leaves_one_running_job_at_most() -> None:
    root = a_root(a_server())
    worker = Worker(root.node)

    def work(number: int) -> None:
        for step in range(4):
            at = START + (10 * number + step) * SECOND
            try:
                job = ordered(root, f"org/model-{number % 3}", now=at)
                given = worker.claim(at).job
                if given is not None and number % 2:
                    worker.publish(given, at, commit=f"{number:02}{step:02}" + "0" * 36)
                elif given is not None:
                    worker.fail(given, "rate_limited", at)
                jobs.cancel(job, reason="", by=OPERATOR, now=at)
            except Refused as refusal:
                assert refusal.code in {Code.LEASE_LOST, Code.STATE_CONFLICT}  # noqa: PT017  others were faster

    race(*[partial(work, number) for number in range(4)])
    assert Job.objects.filter(state="running").count() <= 1
    assert not broken(verify())
