"""The hash of a file whose bytes arrive in any order."""

import hashlib
import itertools
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.acquire.fetching.inorder import InOrder
from agent.acquire.terms import PlannedFile

DATA = bytes(range(256)) * 40
FILE = PlannedFile("f", len(DATA), sha256=hashlib.sha256(DATA).hexdigest())


def buffer() -> memoryview:
    return memoryview(bytearray(100))


def nothing() -> None:
    """No brake."""


def test_bytes_that_are_next_are_taken_as_they_land() -> None:
    found = InOrder(FILE)
    assert found.feed(0, memoryview(DATA[:1000]))
    assert found.feed(1000, memoryview(DATA[1000:]))
    assert found.right


def test_bytes_that_are_not_next_are_left_for_later() -> None:
    found = InOrder(FILE)
    assert not found.feed(1000, memoryview(DATA[1000:]))
    assert found.position == 0
    assert not found.right


def test_a_prefix_of_the_right_bytes_is_not_right() -> None:
    found = InOrder(FILE)
    found.feed(0, memoryview(DATA[:-1]))
    assert not found.whole
    assert not found.right


def test_a_git_blob_is_known_by_its_id() -> None:
    """As ``git hash-object`` says."""
    found = InOrder(PlannedFile("f", 6, git_sha1="ce013625030ba8dba906f756967f9e9ca394464a"))
    found.feed(0, memoryview(b"hello\n"))
    assert found.right


def test_a_file_cut_short_on_the_disk_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(DATA[:500])
    with path.open("rb") as file, pytest.raises(EOFError):
        InOrder(FILE).catch_up(file.fileno(), len(DATA), buffer(), nothing)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, len(DATA) - 1), max_size=12, unique=True), st.randoms())
def test_the_digest_is_right_whatever_the_order_and_whoever_hashes(
    tmp_path: Path, cuts: list[int], random: object
) -> None:
    bounds = [0, *sorted(cuts), len(DATA)]
    pieces = list(itertools.pairwise(bounds))
    random.shuffle(pieces)  # type: ignore[attr-defined]
    path = tmp_path / "f"
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDWR)
    found = InOrder(FILE)
    landed: list[tuple[int, int]] = []
    over = threading.Event()

    def reach() -> int:
        at = 0
        for first, end in sorted(landed):
            if first > at:
                break
            at = end
        return at

    def catch_up() -> None:
        while not over.is_set() or found.position < reach():
            found.catch_up(fd, reach(), buffer(), nothing)

    thread = threading.Thread(target=catch_up)
    thread.start()
    for first, end in pieces:
        os.pwrite(fd, DATA[first:end], first)
        landed.append((first, end))
        found.feed(first, memoryview(DATA[first:end]))
    over.set()
    thread.join()
    os.close(fd)
    assert found.right
