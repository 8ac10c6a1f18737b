"""A worker in parts for tests: told time, a control plane that answers from a list, scripted roots."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import msgspec

from agent import protocol, wire
from agent.client import Client
from agent.lookout import Lookout
from agent.tidying import Tidying
from agent.trouble import Trouble
from agent.worker import Worker
from tests.agent.simulated import BOOT, Parts
from tests.parts.ports import until

ROOT = UUID("11111111-1111-4111-8111-111111111111")
JOB = UUID("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
LEASE = UUID("bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb")
PATH = "/data/artifacts/models"
COMMIT = "c" * 40


def root(**more: Any) -> wire.RootOrder:
    """A storage root as a claim's answer orders it."""
    return msgspec.structs.replace(wire.RootOrder(root_id=ROOT, path=PATH, device_id="8:1"), **more)


def job(*, lease_seconds: float = 60, **more: Any) -> wire.Job:
    """An order to bring a snapshot."""
    order = wire.AcquireOrder(root_id=ROOT, path=PATH, repo_id="org/model", revision="main")
    made = wire.Job(id=JOB, attempt=1, lease_id=LEASE, lease_seconds=lease_seconds, order=order)
    return msgspec.structs.replace(made, **more)


class Desk(Client):
    """The control plane's end: claims are answered from a list, then with nothing new; all that is said is kept."""

    def __init__(self) -> None:
        self.claims: deque[wire.ClaimReply] = deque()
        self.roots: list[wire.RootOrder] = []
        self.progress = wire.ProgressReply(lease_seconds=60)
        self.trouble: Callable[[str], Trouble | None] = lambda _: None
        self.sent: list[tuple[str, Any]] = []
        self.last: list[timedelta] = []

    def call(self, method: str, path: str, *, body: Any = None, **_: Any) -> Any:
        self.sent.append((path, body))
        if trouble := self.trouble(path):
            raise trouble
        if path == protocol.CLAIM:
            if self.claims:
                self.roots = self.claims[0].roots or self.roots
                return msgspec.structs.replace(self.claims.popleft(), roots=self.roots)
            return wire.ClaimReply(roots=self.roots)
        return self.progress if path.endswith("/progress") else wire.ResultReply(state="done")

    def tell(self, path: str, *, bearer: str, body: msgspec.Struct, timeout: timedelta) -> None:
        self.last.append(timeout)
        self.call("POST", path, body=body)

    def said(self, ending: str) -> list[Any]:
        """The bodies that were sent to paths with that ending."""
        return [body for path, body in self.sent if path.endswith(ending)]


class Workplace:
    """One worker and its surroundings."""

    def __init__(self, folder: Path) -> None:
        parts = Parts(folder)
        self.clock, self.health, self.identity = parts.clock, parts.health, parts.identity
        self.desk = Desk()
        self.fault: wire.RootFault | None = None
        self.hang: threading.Event | None = None  # looks wait for it
        self.crash: Exception | None = None
        self.probes: list[bool] = []
        self.partials: list[UUID] = []
        self.weighed: list[Sequence[UUID]] = []
        self.forgotten: list[UUID] = []
        self.slow: threading.Event | None = None  # deletions wait for it
        self.aside: list[str] = []  # what is listed no more, and not deleted yet
        self.untidy: Exception | None = None
        self.work: Callable[..., wire.Result | None] = lambda **_: None
        self.wakes = threading.Event()
        self.lookout = Lookout(
            prove=self._prove,
            tidying=Tidying(
                partials=lambda _: list(self.partials),
                weigh=self._weigh,
                forget=self._forget,
                being_deleted=lambda _: self.aside,
            ),
            clock=self.clock,
            wake=self.wakes.set,
        )
        self.worker = Worker(
            client=self.desk,
            identity=self.identity,
            lookout=self.lookout,
            perform=self._perform,
            health=self.health,
            clock=self.clock,
            rng=Random(1),
            boot_id=BOOT,
            wakes=self.wakes,
        )

    def turn(self, times: int = 1, *, pass_: float = 0.0) -> timedelta:
        """Turn, letting looks end and so much time pass after each; the last wait that was asked for."""
        wait = timedelta()
        for _ in range(times):
            wait = self.worker.turn()
            self.clock.at += pass_
            if self.hang is None:
                self.looked()
        return wait

    def looked(self) -> None:
        """Wait for the look that is under way."""
        until(lambda: self.lookout.looking_for() is None, "the look ends", every=0.001)

    def ready(self, *, fault: wire.RootFault | None = None) -> None:
        """Online, told of one root, and its proof told."""
        self.fault = fault
        self.desk.roots = [root()]
        self.worker.online(True)
        self.turn(4)
        self.desk.sent.clear()

    def begin(self, work: Callable[..., wire.Result | None], **of_job: Any) -> None:
        """Ready, and a job has begun that does this."""
        self.ready()
        self.work = work
        self.desk.claims.append(wire.ClaimReply(job=job(**of_job)))
        self.worker.work()
        self.turn()

    def ended(self) -> None:
        """Wait for the job's thread, and let the worker see it."""
        until(lambda: not any(t.name == "job" for t in threading.enumerate()), "the job ends", every=0.001)

    @property
    def claims(self) -> list[wire.Claim]:
        """The claims that were sent."""
        return self.desk.said("/claim")

    @property
    def results(self) -> list[wire.Result]:
        """The results that were sent."""
        return self.desk.said("/result")

    @property
    def progress(self) -> list[wire.Progress]:
        """The progress that was sent."""
        return self.desk.said("/progress")

    def _prove(self, order: wire.RootOrder, *, now: datetime, probe: bool) -> wire.RootProof:
        self.probes.append(probe)
        if self.hang is not None:
            self.hang.wait(20)
        if self.crash is not None:
            raise self.crash
        return wire.RootProof(
            root_id=order.root_id,
            fault=self.fault,
            detail="because" if self.fault else "",
            device_id="8:1",
            approved=order.approve and self.fault is None,
        )

    def _weigh(self, root: Path, jobs: Sequence[UUID]) -> int:
        self.weighed.append(jobs)
        return 1000 * len(jobs)

    def _forget(self, root: Path, jobs: Sequence[UUID]) -> None:
        if self.untidy is not None:
            raise self.untidy
        if jobs and self.slow is not None:
            self.slow.wait(20)
        self.forgotten += jobs
        self.partials = [job for job in self.partials if job not in jobs]

    def _perform(self, job: wire.Job, **given: Any) -> wire.Result:
        result = self.work(job=job, **given)
        return result or wire.Result(lease_id=job.lease_id, outcome="succeeded", commit=COMMIT)


def trouble_at(ending: str, trouble: Trouble) -> Callable[[str], Trouble | None]:
    """Trouble for paths with that ending, and for no others."""
    return lambda path: trouble if path.endswith(ending) else None
