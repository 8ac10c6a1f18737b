"""What a cancelled job left is gone on with, or makes room for another job, and is kept where neither is the case."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID, uuid4

import pytest

from agent import wire
from agent.acquire.disk import guard, partial, remove, spare
from agent.acquire.terms import Failed
from tests.agent.acquire.acquiring import BIG, BIG_BYTES, always, bytes_of, let_go_wrong, lying_in
from tests.agent.acquire.attempts import Ordered
from tests.agent.acquire.samples import order, plan_of

FIRST, SECOND, RUNNING = (UUID(int=number) for number in (1, 2, 3))
BLOCK = 4096
PLAN = plan_of({"model.safetensors": b"x" * 20_000})


def left(root: Path, job: UUID, blocks: int = 2) -> Path:
    """Half-done files of so many blocks."""
    place = root / f".partial/{job}/parts"
    place.mkdir(parents=True)
    (place / "0.part").write_bytes(b"x" * blocks * BLOCK)
    return place.parent


@pytest.fixture
def disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Says how many bytes are free beside what the cancelled jobs take."""

    def measured(free: int) -> None:
        def statvfs(_: int) -> os.statvfs_result:
            there = sum(job.exists() for job in (root / ".partial").iterdir())
            found = SimpleNamespace(
                f_bavail=free + (2 - there) * 2 * BLOCK, f_frsize=1, f_files=1000, f_favail=1000, f_ffree=1000
            )
            return cast(os.statvfs_result, found)

        real = guard.room
        monkeypatch.setattr(guard, "room", lambda *told, **more: real(*told, **{**more, "statvfs": statvfs}))

    for job in (FIRST, SECOND):
        left(root, job)
    return measured


def make_room(root: Path, expendable: list[UUID]) -> None:
    wanted = order(root, expendable=expendable)
    spare.make_room(PLAN, order=wanted, root=root, job_id=RUNNING, held_bytes=0)


@pytest.mark.parametrize(
    ("free", "kept"),
    [
        (20_000, [FIRST, SECOND]),
        (19_999, [FIRST]),
        (20_000 - 2 * BLOCK, [FIRST]),
        (19_999 - 2 * BLOCK, []),
        (20_000 - 4 * BLOCK, []),
        (19_999 - 4 * BLOCK, [FIRST, SECOND]),
    ],
    ids=["there is room", "a byte is missing", "one does", "one does not", "both just do", "both would not do"],
)
def test_cancelled_jobs_make_room_one_after_the_other(
    root: Path, disk: Callable[[int], None], free: int, kept: list[UUID]
) -> None:
    disk(free)
    make_room(root, [SECOND, FIRST])
    assert remove.partials(root) == kept


def test_only_those_that_the_order_names_make_room(root: Path, disk: Callable[[int], None]) -> None:
    disk(19_999)
    make_room(root, [])
    assert remove.partials(root) == [FIRST, SECOND]


def test_a_preflight_counts_what_could_make_room_and_touches_nothing(root: Path, disk: Callable[[int], None]) -> None:
    disk(19_999)
    found = guard.room(PLAN, order=order(root), root=root)
    assert [spare.fits(found, order(root, expendable=expendable), root) for expendable in ([], [FIRST])] == [
        False,
        True,
    ]
    assert remove.partials(root) == [FIRST, SECOND]


def test_files_that_have_another_name_elsewhere_give_no_room(root: Path) -> None:
    place = left(root, FIRST)
    assert partial.lying_bytes(root, [FIRST, SECOND]) == 2 * BLOCK
    os.link(place / "parts/0.part", root / "elsewhere")
    assert partial.lying_bytes(root, [FIRST]) == 0


def cancelled_at_the_end(ordered: Ordered) -> UUID:
    """A job that has all but the end of its large file, and was cancelled."""
    let_go_wrong(
        ordered.hub,
        always("cdn", file=BIG, status=503, when=lambda asked: bool(asked.range and asked.range[0] >= 2_000_000)),
    )
    with pytest.raises(Failed):
        ordered.run()
    ordered.hub.mend()
    return ordered.job_id


def test_a_cancelled_job_that_is_tried_again_goes_on(ordered: Ordered) -> None:
    cancelled_at_the_end(ordered)
    published = ordered.run().published
    assert published is not None
    assert published.bytes_fetched <= BIG_BYTES - 1_000_000
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


@pytest.mark.parametrize("named", [True, False], ids=["cancelled", "not ours to take"])
def test_a_new_order_of_the_same_goes_on_with_what_a_cancelled_one_left(ordered: Ordered, named: bool) -> None:
    before = cancelled_at_the_end(ordered)
    ordered.job_id = uuid4()
    ordered.more = {"expendable": [uuid4(), before] if named else []}
    published = ordered.run().published
    assert published is not None
    assert (published.bytes_fetched <= BIG_BYTES - 1_000_000) == named
    assert remove.partials(ordered.root) == ([] if named else [before])
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


def test_what_a_cancelled_job_left_of_another_plan_is_left_alone(ordered: Ordered) -> None:
    before = cancelled_at_the_end(ordered)
    ordered.job_id = uuid4()
    ordered.more = {"expendable": [before], "ignore_patterns": ["README.md"]}
    result = ordered.run()
    assert isinstance(result.published, wire.Published)
    assert remove.partials(ordered.root) == [before]
