"""Half-done files in a root are listed and weighed job by job; what could not be measured is told as no weight."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest

import agent.tidying
from agent.tidying import Tidying

FIRST, SECOND = UUID(int=1), UUID(int=2)
ROOT = Path("/nowhere")


class Disk:
    """What lies in a root, and what goes wrong there."""

    def __init__(self) -> None:
        self.lying = {FIRST: 1000, SECOND: 2000}
        self.fault: OSError | None = None
        self.deleted = Event()
        self.deleted.set()

    def partials(self, root: Path) -> list[UUID]:
        return list(self.lying)

    def weigh(self, root: Path, jobs: Sequence[UUID]) -> int:
        if self.fault is not None:
            raise self.fault
        return sum(self.lying[job] for job in jobs)

    def forget(self, root: Path, jobs: Sequence[UUID]) -> None:
        for job in jobs:
            self.lying.pop(job, None)  # one rename, and it is on no list any more
        assert self.deleted.wait(60)


@pytest.fixture
def disk() -> Disk:
    """Two jobs' files."""
    return Disk()


@pytest.fixture
def tidying(disk: Disk) -> Tidying:
    """Over that disk."""
    return Tidying(partials=disk.partials, weigh=disk.weigh, forget=disk.forget)


def test_each_jobs_files_are_weighed_and_all_of_them_together(tidying: Tidying) -> None:
    found = tidying.tidy(ROOT, ())
    assert (found.partials, found.weights) == ([FIRST, SECOND], {FIRST: 1000, SECOND: 2000})
    assert found.bytes.value == 3000


def test_what_could_not_be_measured_has_no_weight_and_a_reason(disk: Disk, tidying: Tidying) -> None:
    disk.fault = OSError("it errs")
    found = tidying.tidy(ROOT, ())
    assert (found.partials, found.weights) == ([FIRST, SECOND], {})
    assert (found.bytes.value, found.bytes.reason) == (None, "error")


def test_as_long_as_a_deletion_lasts_nobody_is_told_how_little_is_left(
    disk: Disk, tidying: Tidying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.tidying, "WITHIN", timedelta(seconds=1))
    disk.deleted.clear()
    found = tidying.tidy(ROOT, {FIRST})
    assert (found.partials, found.done, found.bytes.value) == ([SECOND], False, None)
    monkeypatch.undo()
    disk.deleted.set()
    found = tidying.tidy(ROOT, {FIRST})
    assert (found.partials, found.done, found.bytes.value) == ([SECOND], True, 2000)


def test_what_is_forgotten_is_listed_and_weighed_no_more(tidying: Tidying) -> None:
    found = tidying.tidy(ROOT, {FIRST})
    assert (found.partials, found.weights, found.done) == ([SECOND], {SECOND: 2000}, True)
