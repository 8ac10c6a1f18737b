"""What a job has read whole is not read again, as long as nobody can have touched it."""

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from agent.acquire.disk import digests, known
from agent.acquire.disk.known import Known
from agent.acquire.terms import PlannedFile
from tests.agent.acquire.acquiring import BIG, BIG_BYTES, FILES, bytes_of, lying_in
from tests.agent.acquire.attempts import Ordered
from tests.agent.acquire.samples import planned

CONTENT = b"what it shall be"
FILE = planned("a.safetensors", CONTENT, large=True)
HOUR = 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the planned bytes."""
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path / "file"


def later(seconds: float) -> Known:
    """The same clock as the disk's, so much further on than the files that were just made."""
    return Known(clock=lambda: time.time() + seconds)


def read(found: Known, path: Path, file: PlannedFile = FILE) -> bool:
    """Read it whole."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return found.read(fd, file)
    finally:
        os.close(fd)


def test_what_was_right_is_known_of_the_same_bytes_only(path: Path) -> None:
    found = later(HOUR)
    assert found.right(FILE, path.stat()) is None
    assert read(found, path)
    assert found.right(FILE, path.stat()) is True
    assert found.right(planned("b.safetensors", CONTENT * 2, large=True), path.stat()) is None


def test_what_was_wrong_is_known(path: Path) -> None:
    found = later(0)
    path.write_bytes(CONTENT[::-1])
    assert not read(found, path)
    assert found.right(FILE, path.stat()) is False


def _written(path: Path) -> None:
    path.write_bytes(CONTENT[::-1])


def _written_behind_its_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(CONTENT)
    fresh.rename(path)


def _opened_to_writers(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize("touch", [_written, _written_behind_its_time, _replaced, _opened_to_writers])
def test_of_a_file_that_was_touched_nothing_is_known(path: Path, touch: Callable[[Path], None]) -> None:
    found = later(HOUR)
    os.utime(path, (1, 1))
    assert read(found, path)
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:  # the kernel's tick
        touch(path)
    assert found.right(FILE, path.stat()) is None


@pytest.mark.parametrize(("age", "is_known"), [(0.0, None), (1.0, None), (HOUR, True)])
def test_of_a_file_that_was_touched_just_before_it_was_read_nothing_good_is_known(
    path: Path, age: float, is_known: bool | None
) -> None:
    """Another touch within the same tick would leave its times as they are."""
    found = later(age)
    assert read(found, path)
    assert found.right(FILE, path.stat()) is is_known


def test_of_a_file_that_is_written_while_it_is_read_nothing_is_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, real = later(HOUR), digests.of

    def of(fd: int, file: PlannedFile, **more: object) -> str:
        digest = real(fd, file)
        os.truncate(path, 3)
        return digest

    monkeypatch.setattr(digests, "of", of)
    assert read(found, path)
    assert found.right(FILE, path.stat()) is None


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read whole, by what it shall be."""
    counted: Counter[str] = Counter()
    real = digests.of

    def of(fd: int, file: PlannedFile, **more: object) -> str:
        counted[file.path] += 1
        return real(fd, file, **more)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(digests, "of", of)
    return counted


def mend(ordered: Ordered) -> None:
    """Order a snapshot again that lies there with one file damaged."""
    damaged = ordered.published / BIG
    damaged.chmod(0o644)
    with damaged.open("r+b") as file:
        file.write(b"\0\1\2\3")
    ordered.job_id, ordered.more = uuid4(), {"reread": True}
    published = ordered.run().published
    assert published is not None
    assert (published.bytes_fetched, published.bytes_reused) == (BIG_BYTES, published.bytes - BIG_BYTES)
    assert ordered.tally.bytes_done == published.bytes
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


def test_a_damaged_snapshot_is_mended_by_reading_each_file_once(
    ordered: Ordered, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_SETTLED_SECONDS", 0.0)  # as if it lay there since yesterday
    ordered.run()
    reads.clear()
    mend(ordered)
    assert reads == dict.fromkeys(FILES, 1)


def test_a_snapshot_that_was_touched_just_now_is_mended_by_reading_again(
    ordered: Ordered, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "_SETTLED_SECONDS", HOUR)
    ordered.run()
    reads.clear()
    mend(ordered)
    assert reads["README.md"] == 2
    assert reads[BIG] == 1, "what is wrong need not be"
