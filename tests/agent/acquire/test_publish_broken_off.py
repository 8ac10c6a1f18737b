"""Publishing that is broken off anywhere leaves nothing or the whole to be seen, and the next run finishes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.acquire.disk import paths, publish
from agent.acquire.terms import Failed
from tests.agent.acquire.dying import FILES
from tests.agent.acquire.samples import COMMIT, fetched, plan_of
from tests.agent.acquire.test_publish import do, tree

REPOSITORY = Path(__file__).resolve().parents[3]
STEPS = ["files", "manifest", "folders", "parents", "renamed", "synced", "dropped"]


def test_everything_is_durable_before_it_can_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    seen: list[tuple[str, int]] = []
    real = os.fsync

    def note(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    partial = fetched(tmp_path, FILES)
    monkeypatch.setattr(os, "fsync", note)
    do(tmp_path, step=lambda name: seen.append((name, len(synced))))
    marks = dict(seen)
    ready = str(partial / "snapshot")
    before = synced[: marks["folders"]]
    for path in ["config.json", "d/e/model.safetensors", "manifest.json", "d/e", "d"]:
        assert f"{ready}/{path}" in before
    assert ready in before
    after = synced[marks["renamed"] : marks["synced"]]
    assert after == [str(tmp_path / "models" / "org" / "model"), str(partial)]


def test_a_full_disk_is_told_as_such_and_keeps_what_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    partial = fetched(tmp_path, FILES)
    monkeypatch.setattr(paths.Tree, "write", full)
    with pytest.raises(Failed) as caught:
        do(tmp_path)
    assert caught.value.code == "insufficient_capacity"
    assert caught.value.numbers["free_bytes"] > 0
    assert (partial / "snapshot" / "config.json").read_bytes() == b"{}"


@pytest.mark.parametrize("last", STEPS)
def test_killed_after_any_step_nothing_or_the_whole_is_published_and_the_next_run_finishes(
    tmp_path: Path, last: str
) -> None:
    fetched(tmp_path, FILES)
    command = [sys.executable, "-m", "tests.agent.acquire.dying", str(tmp_path), last]
    assert subprocess.run(command, cwd=REPOSITORY, timeout=30, check=False).returncode == -signal.SIGKILL
    snapshot = tmp_path / "models" / "org" / "model" / COMMIT
    assert snapshot.exists() == (last in ("renamed", "synced", "dropped"))
    if snapshot.exists():
        assert {path: (snapshot / path).read_bytes() for path in FILES} == FILES
        assert publish.present(plan_of(FILES), tmp_path, thorough=True) is not None
    told = do(tmp_path)
    assert told.already_present == (last in ("renamed", "synced", "dropped"))
    assert {path: (snapshot / path).read_bytes() for path in FILES} == FILES
    assert tree(tmp_path / ".partial") == []


def test_a_run_that_is_not_killed_has_gone_through_every_step(tmp_path: Path) -> None:
    fetched(tmp_path, FILES)
    gone: list[str] = []
    do(tmp_path, step=gone.append)
    assert gone == STEPS
