"""Everything below a root is reached without following a link, and nothing outside it is ever touched."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.acquire.disk import paths
from agent.acquire.disk.paths import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, and links of every kind that lead out of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "file").write_text("content")
    (root / "way").symlink_to(outside)
    (root / "real" / "name").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def tree(root: Path) -> Iterator[Tree]:
    """Reached by names."""
    with Tree(root) as opened:
        yield opened


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "a/../b", "a//b", "a/", "./a", "a/.", "nul\0"], ids=lambda path: repr(path)
)
def test_only_plain_relative_paths_are_understood(tree: Tree, path: str) -> None:
    with pytest.raises(ValueError, match="relative path"):
        tree.open(path)


def test_a_file_is_opened_by_its_names(tree: Tree) -> None:
    assert tree.read("real/file", 100) == b"content"


@pytest.mark.parametrize("path", ["way/secret", "real/name", "pipe", "real"], ids=["folder", "file", "pipe", "no-file"])
def test_a_link_or_what_is_no_file_is_not_opened(tree: Tree, path: str) -> None:
    with pytest.raises(OSError, match=r"symbolic|directory|regular"):
        tree.open(path)


def test_a_root_that_is_a_link_is_no_root(root: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Tree(root / "way")


def test_nothing_is_made_through_a_link(tree: Tree, root: Path) -> None:
    with pytest.raises(NotADirectoryError):
        tree.mkdirs("way/new")
    with pytest.raises(NotADirectoryError):
        tree.write("way/new", b"x")
    assert sorted(os.listdir(root.parent / "outside")) == ["secret"]


def test_writing_over_a_link_replaces_the_link(tree: Tree, root: Path) -> None:
    tree.write("real/name", b"new")
    assert (root / "real" / "name").read_bytes() == b"new"
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_folders_are_readable_by_all_whatever_the_umask(tree: Tree, root: Path) -> None:
    before = os.umask(0o077)
    try:
        tree.mkdirs("models/org")
    finally:
        os.umask(before)
    assert [oct((root / path).stat().st_mode)[-3:] for path in ("models", "models/org")] == ["755", "755"]


def test_a_file_longer_than_allowed_is_not_read(tree: Tree) -> None:
    assert tree.read("real/file", 7) == b"content"
    with pytest.raises(OSError, match="larger than 6 bytes") as caught:
        tree.read("real/file", 6)
    assert caught.value.errno == errno.EFBIG


def test_links_are_listed_as_what_they_are(tree: Tree) -> None:
    assert [name for name, _ in tree.files("")] == ["pipe", "real/file", "real/name", "way"]


def test_inner_folders_are_told_before_those_they_lie_in(tree: Tree) -> None:
    tree.mkdirs("a/b/c")
    assert list(tree.folders("")) == ["a/b/c", "a/b", "a", "real"]


@pytest.fixture(params=["kernel", "fallback"])
def renames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the kernel's own rename that replaces nothing, and as on file systems without it."""
    if request.param == "fallback":
        monkeypatch.setattr(paths, "_renameat2", lambda *_: errno.EINVAL)
    return str(request.param)


def test_a_folder_moves_to_where_nothing_is(tree: Tree, root: Path, renames: str) -> None:
    tree.rename("real", "moved")
    assert (root / "moved" / "file").read_text() == "content"


@pytest.mark.parametrize("there", ["empty", "full", "link"])
def test_a_rename_replaces_nothing_not_even_an_empty_folder(tree: Tree, root: Path, renames: str, there: str) -> None:
    if there == "link":
        (root / "there").symlink_to("nowhere")
    else:
        (root / "there").mkdir()
    if there == "full":
        (root / "there" / "x").touch()
    with pytest.raises(FileExistsError):
        tree.rename("real", "there")
    assert (root / "real" / "file").exists()


def test_a_rename_that_fails_otherwise_says_so(tree: Tree, renames: str) -> None:
    with pytest.raises(FileNotFoundError):
        tree.rename("absent", "there")
