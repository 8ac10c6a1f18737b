"""The folder that a job holds open is the one it works in, wherever the root's path leads by then."""

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path

import pytest

from agent.acquire.disk import held
from agent.acquire.disk.held import Held, holding
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Failed


def fine() -> None:
    """The root is what was approved."""


def swap(root: Path) -> None:
    """Another folder takes its place."""
    root.rename(root.parent / "the true one")
    root.mkdir()


def test_what_opens_the_root_or_a_folder_in_it_gets_to_the_held_one(tmp_path: Path, root: Path) -> None:
    (root / "a").mkdir()
    with holding(root, fine):
        swap(root)
        with Tree(root) as tree, Tree(root / "a") as inner:
            tree.mkdirs("b")
            inner.write("c", b"1")
    assert list(root.iterdir()) == []
    assert sorted(os.listdir(tmp_path / "the true one")) == [".modelforge-root", "a", "b"]
    assert (tmp_path / "the true one/a/c").read_bytes() == b"1"


def test_without_a_job_a_path_leads_where_it_leads(root: Path) -> None:
    with holding(root, fine):
        pass
    swap(root)
    with Tree(root) as tree:
        tree.mkdirs("b")
    assert os.listdir(root) == ["b"]


def test_a_look_on_a_thread_of_its_own_sees_what_everybody_sees(root: Path) -> None:
    seen: list[list[str]] = []

    def look() -> None:
        with Tree(root) as tree:
            seen.append(tree.names(""))

    with holding(root, fine):
        swap(root)
        for target in (look, copy_context().run):
            thread = threading.Thread(target=target, args=() if target is look else (look,))
            thread.start()
            thread.join(10)
    assert seen == [[], [".modelforge-root"]]


def test_a_look_on_the_jobs_own_thread_does_too(root: Path) -> None:
    seen: list[list[str]] = []

    def look() -> None:
        with Tree(root) as tree:
            seen.append(tree.names(""))

    with holding(root, look) as hold:
        hold.check()
        swap(root)
        with pytest.raises(Failed):
            hold.check()
    assert seen == [[".modelforge-root"], []]


def test_a_thread_that_comes_back_when_the_job_is_over_reaches_nothing(tmp_path: Path, root: Path) -> None:
    with holding(root, fine):
        late = copy_context()
    other = os.open(tmp_path / "quarantine", held.FOLDER)  # has the number that was the root's
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            late.run(Tree, root)
    finally:
        os.close(other)


def test_through_a_link_below_the_held_root_nothing_is_reached(tmp_path: Path, root: Path) -> None:
    (root / "a").symlink_to(tmp_path / "quarantine")
    with holding(root, fine), pytest.raises(OSError, match="Not a directory"):
        Tree(root / "a")


def test_a_volume_that_is_reached_by_a_link_may_be_the_root_itself(tmp_path: Path, root: Path) -> None:
    (tmp_path / "volume").symlink_to(root)
    with holding(tmp_path / "volume", fine) as hold, Tree(tmp_path / "volume") as tree:
        hold.check()
        assert tree.names("") == [".modelforge-root"]


def test_another_folder_in_the_roots_place_is_told_whatever_it_looks_like(root: Path) -> None:
    with holding(root, fine) as hold:
        hold.check()
        swap(root)
        with pytest.raises(Failed, match="Another folder") as failed:
            hold.check()
    assert failed.value.code == "root_unverified"


def test_a_root_that_cannot_be_opened_is_told_by_the_look(tmp_path: Path) -> None:
    def look() -> None:
        raise Failed("root_unverified", "There is no folder.")

    with pytest.raises(Failed, match="There is no folder"), holding(tmp_path / "gone", look):
        pass


def test_a_root_that_the_look_finds_and_nobody_can_open_is_the_disks_failure(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="cannot be opened") as failed, holding(tmp_path / "gone", fine):
        pass
    assert failed.value.code == "storage_error"


def failing(code: str) -> Callable[[], None]:
    """A look that ends so."""

    def look() -> None:
        raise Failed(code, "because")  # type: ignore[arg-type]  # one of the two below

    return look


def test_before_the_end_of_a_job_is_told_only_a_root_that_is_another_one_outranks_it(root: Path) -> None:
    with holding(root, failing("storage_error")) as slow:
        slow.outrank()  # it does not answer in time
    with holding(root, failing("root_unverified")) as gone, pytest.raises(Failed, match="because"):
        gone.outrank()
    with holding(root, fine) as vanished:
        root.rename(root.parent / "elsewhere")
        with pytest.raises(Failed, match="cannot be looked at") as failed:
            vanished.outrank()
    assert failed.value.code == "root_unverified"


def test_the_root_is_not_looked_at_for_each_of_a_thousand_files(root: Path) -> None:
    looks, now = [], [100.0]
    fd = os.open(root, held.FOLDER)
    try:
        hold = Held(root, fd, lambda: looks.append(now[0]), timedelta(seconds=1), clock=lambda: now[0])
        for _ in range(1000):
            hold.still()
        assert looks == [100.0]
        hold.check()
        assert looks == [100.0, 100.0], "asked for, it looks"
        now[0] += 1
        hold.still()
        assert looks[2:] == [101.0]
    finally:
        os.close(fd)
