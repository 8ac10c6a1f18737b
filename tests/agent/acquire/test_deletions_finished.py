"""Half-done files that are being deleted are no secret until they are gone, whoever was ended in the middle of it."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from agent.acquire.disk import remove
from agent.acquire.terms import Failed
from tests.agent.acquire.samples import JOB, fetched
from tests.parts import disks

FILES = {"config.json": b"{}", "d/e/model.safetensors": b"weights"}
OTHER_JOB = UUID("22222222-2222-4333-8444-555555555555")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty root."""
    root = tmp_path / "root"
    root.mkdir()
    return root


def aside(root: Path, job: UUID) -> Path:
    """What a process that was killed in the middle of a deletion left of a job's half-done files."""
    folder = root / ".removed" / f"{job}.partial"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text("{}")
    return folder


def test_a_look_forgets_and_finishes_what_an_earlier_process_began_to_forget(root: Path) -> None:
    fetched(root, FILES)
    left = aside(root, OTHER_JOB)
    assert remove.being_deleted(root) == [f".removed/{OTHER_JOB}.partial"]
    remove.tidy(root, [JOB])
    assert (remove.partials(root), remove.being_deleted(root), left.exists()) == ([], [], False)


def test_a_look_leaves_to_its_job_what_was_published(root: Path) -> None:
    """A removal that was broken off, and one that runs: neither is half done, and a job finishes it."""
    (root / ".removed" / str(JOB)).mkdir(parents=True)
    remove.tidy(root, [])
    assert remove.being_deleted(root) == []
    assert sorted(os.listdir(root / ".removed")) == [str(JOB)]


def test_half_done_files_that_cannot_be_deleted_are_told_of_and_hold_up_no_others(root: Path) -> None:
    fetched(root, FILES)
    held, idle = aside(root, UUID(int=1)), aside(root, UUID(int=2))
    with disks.memory(held / "d", disks.MIB):
        for jobs in ([JOB], []):
            with pytest.raises(Failed, match=r"mounted there.*deleting \.removed/00000000-0000-0000-0000-000000000001"):
                remove.tidy(root, jobs)
            assert remove.being_deleted(root) == [f".removed/{UUID(int=1)}.partial"]
        assert (remove.partials(root), idle.exists()) == ([], False)
    remove.tidy(root, [])
    assert remove.being_deleted(root) == []


def test_half_done_files_that_cannot_be_set_aside_stay_on_the_list(root: Path) -> None:
    fetched(root, FILES)
    fetched(root, FILES, OTHER_JOB)
    (root / ".removed").symlink_to(root.parent)
    with pytest.raises(Failed):
        remove.tidy(root, [JOB])
    (root / ".removed").unlink()
    assert remove.partials(root) == [JOB, OTHER_JOB]
    remove.tidy(root, [JOB])
    assert remove.partials(root) == [OTHER_JOB]
