"""One acquisition in this process: the agent's own steps against a stand-in Hub, into a folder of the test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from agent import wire
from agent.acquire import steps
from agent.acquire.disk.publish import publish
from agent.acquire.disk.quarantine import Quarantine
from agent.acquire.fetching.fetch import fetch
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.line.limits import Limits
from agent.acquire.task import Tools
from agent.acquire.terms import Brake, Failed, Notes, Plan, PlannedFile, Tally
from agent.variables import Secret
from tests.hub.hub import Hub
from tests.hub.repositories import Repository

LIMITS = Limits(
    connections=4,
    segment_bytes=256 * 1024,
    chunk_bytes=64 * 1024,
    connect=timedelta(seconds=2),
    stall=timedelta(seconds=1),
    slowest_bytes_per_second=20_000,
    drip=timedelta(seconds=1),
    tries=4,
    backoff_floor=timedelta(milliseconds=10),
    backoff_cap=timedelta(milliseconds=50),
    longest_hold=timedelta(seconds=2),
)
"""As the agent's own, but impatient, and with many segments in few bytes."""


def plan_of(repo: Repository, commit: str = "") -> Plan:
    """The plan of all files, as the listing would have it."""
    files = [
        PlannedFile(f.path, f.size, sha256=f.sha256 if f.large else None, git_sha1=None if f.large else f.blob_id)
        for f in repo.files(commit).values()
    ]
    return Plan(repo.id, commit or repo.sha, tuple(sorted(files, key=lambda file: file.path)))


@dataclass
class Attempt:
    """One job in a folder: ``run`` fetches and publishes as the agent's steps do, and may be called again."""

    hub: Hub
    root: Path
    repo: Repository
    token: str = ""
    limits: Limits = LIMITS
    source: Source | None = None
    job_id: UUID = field(default_factory=uuid4)
    brake: Brake = field(default_factory=Brake)
    tally: Tally = field(default_factory=Tally)
    quarantined: list[wire.Quarantined] = field(default_factory=list)

    @property
    def partial(self) -> Path:
        """Where half-done files lie."""
        return self.root / ".partial" / str(self.job_id)

    @property
    def plan(self) -> Plan:
        """What it brings."""
        return plan_of(self.repo)

    @property
    def published(self) -> Path:
        """Where the snapshot lies in the end."""
        return self.root / self.plan.snapshot

    def run(self) -> str:
        """``published``, or the code of the failure."""
        try:
            self.fetch()
        except Failed as failed:
            self.failed = failed
            return failed.code
        self.publish()
        return "published"

    def fetch(self) -> None:
        """All bytes, verified."""
        self.tally = Tally()
        self.partial.mkdir(parents=True, exist_ok=True)
        source = self.source or Source(endpoint=self.hub.url, token=Secret(self.token) if self.token else None)
        fetch(
            self.plan,
            partial=self.partial,
            source=source,
            brake=self.brake,
            tally=self.tally,
            pace=Pace(),
            limits=self.limits,
            mismatch=self._mismatch,
        )

    def publish(self) -> wire.Published:
        """One rename."""
        order = wire.AcquireOrder(root_id=uuid4(), path=str(self.root), repo_id=self.repo.id, revision="main")
        return publish(
            self.plan,
            root=self.root,
            partial=self.partial,
            order=order,
            bytes_fetched=self.tally.bytes_fetched,
            bytes_reused=0,
            now=datetime.now(UTC),
        )

    def _mismatch(self, file: PlannedFile, path: Path, found: str) -> None:
        kept = Quarantine(self.root.parent / "quarantine", max_files=10, max_bytes=10**9)
        kept.folder.mkdir(exist_ok=True)
        self.quarantined.append(kept.put(self.job_id, path, file, found, "digest_mismatch", self.repo.id))


@dataclass
class Ordered:
    """One job as the agent's worker runs it, from the plan on; ``run`` may be called again."""

    hub: Hub
    root: Path
    repo: Repository
    still: Callable[[], None] = lambda: None
    limits: Limits = LIMITS
    reserve_bytes: int = 0
    source: Source | None = None
    more: dict[str, Any] = field(default_factory=dict)  # of the order
    job_id: UUID = field(default_factory=uuid4)
    brake: Brake = field(default_factory=Brake)
    tally: Tally = field(default_factory=Tally)
    notes: Notes = field(default_factory=Notes)
    told: list[tuple[str, int]] = field(default_factory=list)  # commit, and bytes fetched by then
    here: list[int] = field(default_factory=list)  # bytes that were told to be here

    def run(self) -> wire.Result:
        """What is told of a good end; raises ``Failed`` or ``Stopped``."""
        self.tally = Tally()
        order = wire.AcquireOrder(
            **{
                "root_id": uuid4(),
                "path": str(self.root),
                "repo_id": self.repo.id,
                "revision": "main",
                "reserve_bytes": self.reserve_bytes,
                **self.more,
            }
        )
        beside = self.root.parent
        tools = Tools(
            source=self.source or Source(endpoint=self.hub.url),
            pace=Pace(),
            quarantine=Quarantine(beside / "quarantine", max_files=10, max_bytes=10**9),
            hf_cache=beside / "hf-cache",
            now=lambda: datetime.now(UTC),
            limits=self.limits,
        )
        self.still()
        return steps.perform(
            wire.Job(id=self.job_id, attempt=1, lease_id=uuid4(), lease_seconds=300, order=order),
            tools=tools,
            brake=self.brake,
            tally=self.tally,
            notes=self.notes,
            tell=self._tell,
            still=self.still,
            look_every=timedelta(),
        )

    def _tell(self) -> None:
        self.told.append((self.tally.commit, self.tally.bytes_fetched))
        self.here.append(self.tally.bytes_here)

    @property
    def published(self) -> Path:
        """Where the snapshot lies in the end."""
        return self.root / "models" / self.repo.id / self.repo.sha
