"""A fetch alone, against a stand-in Hub, into a folder of the test: no listing before it, no publishing after it."""

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.acquire.fetching.fetch import fetch
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Failed, Plan, PlannedFile, Stopped, Tally
from tests.hub import contents
from tests.hub.hub import Hub
from tests.hub.repositories import Repository

KIB = 1024
LIMITS = Limits(
    connections=4,
    segment_bytes=64 * KIB,
    chunk_bytes=16 * KIB,
    connect=timedelta(seconds=2),
    stall=timedelta(seconds=5),
    tries=3,
    backoff_floor=timedelta(milliseconds=10),
    backoff_cap=timedelta(milliseconds=20),
)
"""As the agent's own, with many segments in few bytes."""


def plan_of(repo: Repository) -> Plan:
    """The plan of all files of ``main``."""
    files = [
        PlannedFile(f.path, f.size, sha256=f.sha256 if f.large else None, git_sha1=None if f.large else f.blob_id)
        for f in repo.files().values()
    ]
    return Plan(repo.id, repo.sha, tuple(files))


@dataclass
class Fetch:
    """What is fetched, and where to; ``run`` may be called again."""

    hub: Hub
    repo: Repository
    partial: Path
    limits: Limits = LIMITS
    source: Source | None = None
    plan: Plan | None = None
    brake: Brake = field(default_factory=Brake)
    tally: Tally = field(default_factory=Tally)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def run(self, **more: Any) -> str:
        """How it ends: ``done``, the failure's code, or why it was stopped."""
        self.tally, self.wrong = Tally(), []
        self.partial.mkdir(parents=True, exist_ok=True)
        given: dict[str, Any] = {
            "partial": self.partial,
            "source": self.source or Source(endpoint=self.hub.url, ca_file=self.hub.ca_file),
            "brake": self.brake,
            "tally": self.tally,
            "pace": Pace(),
            "limits": self.limits,
            "mismatch": lambda file, path, found: self.wrong.append((file.path, found)),
        }
        try:
            fetch(self.plan or plan_of(self.repo), **(given | more))
        except Failed as failed:
            self.failed = failed
            return failed.code
        except Stopped as stopped:
            self.brake = Brake()
            return stopped.why
        return "done"

    def run_until(self, count: int) -> str:
        """Pull the brake once so many bytes have landed."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.001):
                if self.tally.bytes_done >= count:
                    self.brake.pull("released")
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            return self.run()
        finally:
            over.set()
            thread.join()

    @property
    def snapshot(self) -> Path:
        """Where whole files lie."""
        return self.partial / "snapshot"

    @property
    def right(self) -> bool:
        """Whether the snapshot holds the repository's files, each with its bytes, and nothing else."""
        return self.lying == {path: contents.read(file.content) for path, file in self.repo.files().items()}

    @property
    def lying(self) -> dict[str, bytes]:
        """What the snapshot holds."""
        paths = [path for path in self.snapshot.rglob("*") if not path.is_dir() or path.is_symlink()]
        return {str(path.relative_to(self.snapshot)): path.read_bytes() for path in paths}
