"""A fetch that is killed at any moment is gone on with: only what was on its way comes twice."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.acquire.fetching import LIMITS, Fetch, plan_of
from tests.hub.contents import Generated, read, weights
from tests.hub.hub import Hub
from tests.hub.repositories import Files, Repository
from tests.parts.ports import until

BIG = "model.safetensors"


def kill_at(command: list[str], instant: Callable[[], bool]) -> None:
    child = subprocess.Popen(command)
    until(lambda: instant() or child.poll() is not None, "bytes come", every=0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()


def killed(hub: Hub, repo: Repository, partial: Path, **more: Any) -> list[str]:
    """The command of a fetch in a process of its own."""
    plan = plan_of(repo)
    question = {
        "repo_id": plan.repo_id,
        "commit": plan.commit,
        "files": [[file.path, file.size, file.sha256, file.git_sha1] for file in plan.files],
        "partial": str(partial),
        "endpoint": hub.url,
        "connections": LIMITS.connections,
        "chunk_bytes": LIMITS.chunk_bytes,
    }
    return [sys.executable, "-m", "tests.agent.acquire.killed", json.dumps(question | more)]


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9])
def test_after_a_kill_only_what_was_on_its_way_comes_twice(hub: Hub, tmp_path: Path, share: float) -> None:
    """kill -9 in the middle; done twice, so that what was resumed is killed, too."""
    files: Files = {BIG: weights(2_000_000, seed=3), "other.bin": Generated(500_000, seed=4), "config.json": b"{}"}
    repo = hub.repo("org/m", files)
    total = sum(file.size for file in repo.files().values())
    in_flight = LIMITS.connections * LIMITS.segment_bytes
    hub.cdn.bytes_per_second = 1_500_000
    command = killed(hub, repo, tmp_path, segment_bytes=LIMITS.segment_bytes)
    for part in (share / 2, share):
        kill_at(command, lambda: hub.sent() >= total * part)  # noqa: B023  called before part changes
    hub.cdn.bytes_per_second = None
    fetch = Fetch(hub, repo, tmp_path)
    assert fetch.run() == "done"
    assert fetch.lying == {path: read(file.content) for path, file in repo.files().items()}
    landed_before = total - fetch.tally.bytes_fetched
    assert landed_before >= total * share - 2 * in_flight - 2 * 400_000  # what lay in the sockets of the killed


@pytest.mark.parametrize("segment_bytes", [400_000, 4_000_000], ids=["segments", "one piece"])
def test_over_a_slow_line_a_kill_does_not_cost_the_segments_under_way(
    hub: Hub, tmp_path: Path, segment_bytes: int
) -> None:
    repo = hub.repo("org/m", {BIG: weights(1_600_000, seed=5)})
    hub.cdn.bytes_per_second = 300_000
    command = killed(hub, repo, tmp_path, segment_bytes=segment_bytes, note_every=0.05)
    kill_at(command, lambda: hub.sent() >= 1_000_000)
    hub.cdn.bytes_per_second = None
    fetch = Fetch(hub, repo, tmp_path)
    assert fetch.run() == "done"
    assert fetch.right
    assert fetch.tally.bytes_fetched <= 1_000_000, "of 1.6 MB, a megabyte had left the Hub before the kill"
