"""A model arrives through the whole: how late a beat gets meanwhile, and how much memory the agent takes."""

import tempfile
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import psutil
from django.core.management import call_command
from django.utils import timezone

from agent.backoff import STEADY_JITTER
from artifacts import orders, storage
from artifacts.models import Job, StorageRoot
from bench import whole
from bench.acquire import EIGHT, MEMORY_MIB, hub
from bench.acquire_snapshots import MIB, make
from bench.report import Report
from nodes.callers import SYSTEM
from nodes.models import Heartbeat, Node
from tests.parts.ports import until

INTERVAL = timedelta(seconds=1)
LATEST = timedelta(seconds=1)
"""A beat may come so much after its time."""
_LOOK_EVERY_SECONDS = 0.02


def main(report: Report) -> None:
    """Eight large files from the stand-in Hub through order, claim, fetch, verify and publish."""
    call_command("migrate", verbosity=0)
    report.heading(
        f"A model arrives: order to published, {EIGHT.files} x {EIGHT.bytes_each // MIB} MiB, a beat a second"
    )
    with tempfile.TemporaryDirectory(prefix="modelforge-arrival-") as name:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        make(EIGHT, data)
        of_web = {"MODELFORGE_HEARTBEAT_INTERVAL_SECONDS": f"{INTERVAL.total_seconds():g}"}
        with (
            hub(data) as line,
            whole.agent_online(folder, timezone.now(), of_web=of_web, HF_ENDPOINT=line.endpoint) as agent,
        ):
            root = _root(folder)
            quiet = _Watch(agent.pid)
            time.sleep(10)
            quiet.end()
            busy, start = _Watch(agent.pid), time.monotonic()
            job, _ = orders.acquire(root, repo_id=f"bench/{EIGHT.name}", by=SYSTEM, now=timezone.now())
            until(lambda: _ended(job.pk), "the model is there", within=300, every=0.2)
            took = time.monotonic() - start
            busy.end()
    report.row("seconds from the order", f"{took:.1f}", f"{EIGHT.bytes / took / 1e6:.0f} MB/s")
    report.row("largest gap between beats, idle", f"{quiet.gap.total_seconds():.2f} s")
    most = INTERVAL * (1 + STEADY_JITTER) + LATEST
    report.bound("largest gap between beats, a model arriving (s)", busy.gap.total_seconds(), most=most.total_seconds())
    report.bound("MiB resident, a model arriving", busy.resident_mib, most=MEMORY_MIB)


def _root(folder: Path) -> StorageRoot:
    """A proven storage root of the one node."""
    until(lambda: Node.objects.get().volumes.exists(), "the facts are told", within=60)
    path = str(folder / "artifacts" / "models")
    root = storage.register(
        Node.objects.get(), host_path=path, container_path=path, reserve_bytes=0, by=SYSTEM, now=timezone.now()
    )
    until(lambda: StorageRoot.objects.get(pk=root.pk).state == StorageRoot.State.VERIFIED, "it is proven", within=60)
    return StorageRoot.objects.get(pk=root.pk)


def _ended(key: UUID) -> bool:
    job = Job.objects.get(pk=key)
    if job.state == Job.State.FAILED:
        raise RuntimeError(f"the job failed: {job.failure_code} {job.failure_detail}")
    return job.state == Job.State.SUCCEEDED


class _Watch:
    """Looks at when the node was heard, and how large its agent is, until it is ended."""

    def __init__(self, pid: int) -> None:
        self.gap = timedelta()
        self.resident_mib = 0.0
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """No more."""
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        heard = self._heard()
        while not self._ended.wait(_LOOK_EVERY_SECONDS):
            now = self._heard()
            self.gap = max(self.gap, now - heard)
            heard = now
            self.resident_mib = max(self.resident_mib, self._process.memory_info().rss / 2**20)

    @staticmethod
    def _heard() -> datetime:
        found = Heartbeat.objects.values_list("last_heard_at", flat=True).get()
        assert found is not None
        return found
