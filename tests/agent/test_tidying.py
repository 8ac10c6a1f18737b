"""Half-done files in a root are listed and weighed job by job; nobody hears how little is left before it is gone."""

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
        self.aside: list[str] = []  # on no list any more, and not deleted yet
        self.fault: OSError | None = None
        self.stuck: OSError | None = None  # what a deletion of those meets
        self.rename: OSError | None = None
        self.deleted = Event()
        self.deleted.set()

    def partials(self, root: Path) -> list[UUID]:
        return list(self.lying)

    def weigh(self, root: Path, jobs: Sequence[UUID]) -> int:
        if self.fault is not None:
            raise self.fault
        return sum(self.lying[job] for job in jobs)

    def forget(self, root: Path, jobs: Sequence[UUID]) -> None:
        if jobs and self.rename is not None:
            raise self.rename
        for job in jobs:
            if self.lying.pop(job, None) is not None:  # one rename, and it is on no list any more
                self.aside.append(str(job))
        assert self.deleted.wait(60)
        if self.aside and self.stuck is not None:
            raise self.stuck
        self.aside.clear()


@pytest.fixture
def disk() -> Disk:
    """Two jobs' files."""
    return Disk()


@pytest.fixture
def tidying(disk: Disk) -> Tidying:
    """Over that disk."""
    return Tidying(
        partials=disk.partials, weigh=disk.weigh, forget=disk.forget, being_deleted=lambda _: list(disk.aside)
    )


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


def test_what_an_earlier_process_left_of_a_deletion_is_finished_unasked(disk: Disk, tidying: Tidying) -> None:
    disk.aside = ["of an earlier process"]
    found = tidying.tidy(ROOT, ())
    assert (disk.aside, found.done, found.bytes.value) == ([], True, 3000)


def test_until_that_is_gone_nobody_is_told_how_little_is_left(
    disk: Disk, tidying: Tidying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent.tidying, "WITHIN", timedelta(seconds=1))
    disk.aside = ["of an earlier process"]
    disk.deleted.clear()
    found = tidying.tidy(ROOT, ())
    assert (found.partials, found.done, found.bytes.value) == ([FIRST, SECOND], False, None)
    monkeypatch.undo()
    disk.deleted.set()
    assert tidying.tidy(ROOT, ()).bytes.value == 3000


def test_what_a_job_deletes_at_the_same_time_is_not_told_as_gone(
    disk: Disk,
) -> None:
    """It begins after the look's own deletions have ended, and before the look lists what is left."""

    def meanwhile(_: Path) -> list[UUID]:
        disk.aside.append("of a job")
        return [SECOND]

    tidying = Tidying(
        partials=meanwhile, weigh=disk.weigh, forget=disk.forget, being_deleted=lambda _: list(disk.aside)
    )
    found = tidying.tidy(ROOT, ())
    assert (found.partials, found.bytes.value) == ([SECOND], None)


def test_a_deletion_that_errs_is_not_told_as_done_and_is_tried_again_at_each_look(disk: Disk, tidying: Tidying) -> None:
    disk.stuck = OSError("not permitted")
    for forget in ({FIRST}, set[UUID](), set[UUID]()):
        found = tidying.tidy(ROOT, forget)
        assert (found.partials, found.bytes.value, found.bytes.reason) == ([SECOND], None, "error")
        assert found.done, "it goes on no more: jobs need not wait for it"
    disk.stuck = None
    assert tidying.tidy(ROOT, ()).bytes.value == 2000


def test_what_cannot_even_be_set_aside_is_listed_and_weighed_as_before(disk: Disk, tidying: Tidying) -> None:
    disk.rename = OSError("not permitted")
    found = tidying.tidy(ROOT, {FIRST})
    assert (found.partials, found.bytes.value) == ([FIRST, SECOND], 3000)


def test_the_log_tells_of_a_deletion_that_errs_once_until_it_is_another_trouble_or_has_ended(
    disk: Disk, tidying: Tidying, caplog: pytest.LogCaptureFixture
) -> None:
    for trouble in ("not permitted", "not permitted", "busy", "", "busy"):
        disk.aside = ["of an earlier process"]
        disk.stuck = OSError(trouble) if trouble else None
        tidying.tidy(ROOT, ())
    told = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert told == ["not permitted", "busy", "busy"]
