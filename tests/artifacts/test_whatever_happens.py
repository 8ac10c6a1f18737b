"""Whatever happens in whatever order, the rules hold: random acts of agents, operators and the clock on one node."""

import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from agent import wire
from agent.protocol import Code
from artifacts import expiry, jobs, orders, storage
from artifacts.models import Artifact, Job, StorageRoot
from nodes.audit import broken, events, verify
from nodes.callers import Refused
from tests.artifacts.ordering import GIB, OPERATOR, Worker, a_root, a_server, ordered, proof, published
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db
STEPS = 150
ALLOWED = {Code.LEASE_LOST, Code.STATE_CONFLICT, Code.ROOT_UNVERIFIED, Code.INVALID}
FAILURES: list[wire.FailureCode] = ["stalled", "rate_limited", "not_found", "verification_failed", "storage_error"]


class Life:
    """One node, its operator, its agent and the copies of it, and what they hold."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.now = START
        self.node = a_server()
        self.roots = [a_root(self.node), a_root(self.node, "/data/artifacts/lab")]
        self.workers = [Worker(self.node)]
        self.held: list[wire.Job] = []
        self.newest: dict[Any, Any] = {}  # job -> the lease that was given last

    def step(self) -> None:
        """Something happens."""
        self.now += timedelta(seconds=self.luck.choice([0.1, 1, 5, 40, 400]))
        act = self.luck.choice([self.order, self.claim, self.claim, self.tell, self.tell, self.end, self.end])
        rare = [self.cancel, self.retry, self.restart, self.look, self.look, self.fault, self.verify, self.expire]
        try:
            (act if self.luck.random() < 0.7 else self.luck.choice(rare))()
        except Refused as refusal:
            assert refusal.code in ALLOWED, refusal.detail  # noqa: PT017  what may be refused, by which code

    def order(self) -> None:
        ordered(self.luck.choice(self.roots), f"org/model-{self.luck.randrange(3)}", now=self.now)

    def claim(self) -> None:
        given = self.workers[-1].claim(self.now).job
        if given is not None:
            self.held.append(given)
            self.newest[given.id] = given.lease_id

    def tell(self) -> None:
        if self.held:
            given = self.one()
            self.workers[-1].tell(given, self.now, bytes_total=GIB, bytes_done=self.luck.randrange(GIB))
            self.must_be_newest(given)

    def end(self) -> None:
        if not self.held:
            return
        given, worker = self.one(), self.workers[-1]
        before = Job.objects.get(pk=given.id)
        how = self.luck.choice(["publish", "publish", "fail", "released", "cancelled"])
        if how == "fail":
            worker.fail(given, self.luck.choice(FAILURES), self.now)
        elif how != "publish":
            worker.finish(given, self.now, outcome=how)
        elif isinstance(given.order, wire.VerifyOrder):
            found = wire.Verified(files=3, bytes=GIB, damaged=self.luck.choice([[], ["a"]]))
            worker.finish(given, self.now, outcome="succeeded", verified=found)
        else:
            commit = before.commit or f"{self.luck.randrange(3):040x}"
            worker.finish(given, self.now, outcome="succeeded", commit=commit, published=published(given, commit))
        if before.answered_lease_id != given.lease_id:
            self.must_be_newest(given)

    def one(self) -> wire.Job:
        return self.held[-1] if self.luck.random() < 0.8 else self.luck.choice(self.held)

    def must_be_newest(self, given: wire.Job) -> None:
        assert self.newest[given.id] == given.lease_id, "a word under an older lease was heard"

    def cancel(self) -> None:
        jobs.cancel(self.any_job(), by=OPERATOR, now=self.now)

    def retry(self) -> None:
        jobs.retry(self.any_job(), by=OPERATOR, now=self.now)

    def any_job(self) -> Job:
        return self.luck.choice(list(Job.objects.order_by("created_at", "repo_id")) or [ordered(self.roots[0])])

    def restart(self) -> None:
        self.workers.append(self.workers[-1].restart())

    def look(self) -> None:
        self.workers[-1].claim(self.now, types=[], proofs=[self.seen(root) for root in self.roots])

    def fault(self) -> None:
        self.workers[-1].claim(self.now, types=[], proofs=[proof(self.luck.choice(self.roots), fault="marker_missing")])
        if self.luck.random() < 0.3:
            storage.approve_again(self.luck.choice(self.roots), reason="again", by=OPERATOR, now=self.now)

    def seen(self, root: StorageRoot) -> wire.RootProof:
        return proof(root, approved=StorageRoot.objects.get(pk=root.pk).approve)

    def verify(self) -> None:
        for artifact in Artifact.objects.order_by("published_at")[:1]:
            orders.verify(artifact, by=OPERATOR, now=self.now)

    def expire(self) -> None:
        expiry.expire(now=self.now)
        assert not Job.objects.filter(state="running", lease_expires_at__lt=self.now).exists()


def must_add_up(life: Life, now: datetime) -> None:
    """What holds at every instant."""
    running = list(Job.objects.filter(state="running"))
    assert len(running) <= 1
    for job in running:
        assert job.lease_id == life.newest[job.pk]
        assert job.lease_expires_at is not None
        assert job.lease_expires_at <= now + settings.JOB_LEASE
    for job in Job.objects.all():
        assert job.spent <= min(job.max_attempts, job.attempt)
        assert (job.finished_at is None) == (job.state in Job.ACTIVE)
        assert job.state != "succeeded" or job.artifact is not None
        assert job.state != "failed" or job.failure_code


@pytest.mark.parametrize("seed", range(3))
def test_the_rules_hold(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
        must_add_up(life, life.now)
    ended = events().filter(type__in=["job.succeeded", "job.failed", "job.cancelled"]).count()
    again = events().filter(type="job.retried").count()
    assert ended - again == Job.objects.exclude(state__in=Job.ACTIVE).count()
    assert events().filter(type="artifact.published").count() >= Artifact.objects.count() > 0
    assert not broken(verify())
