"""A published snapshot that somebody or something damaged is known as such, and makes place for the whole one."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.acquire.disk import publish
from agent.acquire.terms import Failed
from tests.agent.acquire.dying import FILES
from tests.agent.acquire.samples import COMMIT, fetched, plan_of, published
from tests.agent.acquire.test_publish import do, tree
from tests.agent.acquire.test_publish_broken_off import REPOSITORY


def _changed(snapshot: Path) -> None:
    (snapshot / "config.json").chmod(0o644)
    (snapshot / "config.json").write_bytes(b"[]")


def _emptied(snapshot: Path) -> None:
    snapshot.rename(snapshot.parent.parent / "gone")
    snapshot.mkdir()


def _replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else by that name."""

    def damage(snapshot: Path) -> None:
        (snapshot / name).rename(snapshot.parent.parent / "gone")
        make(snapshot / name)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed": _changed,
    "missing": lambda snapshot: (snapshot / "config.json").unlink(),
    "no manifest": lambda snapshot: (snapshot / "manifest.json").unlink(),
    "an empty folder": _emptied,
    "a link as manifest": _replaced("manifest.json", lambda path: path.symlink_to("/etc/hostname")),
    "a folder as manifest": _replaced("manifest.json", Path.mkdir),
    "a pipe as manifest": _replaced("manifest.json", os.mkfifo),
    "a link as file": _replaced("config.json", lambda path: path.symlink_to("/etc/hostname")),
    "a link as folder": _replaced("d", lambda path: path.symlink_to("/etc")),
    "a file as folder": _replaced("d", lambda path: path.write_bytes(b"x")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_makes_place_for_the_whole_one(tmp_path: Path, damage: str) -> None:
    snapshot = published(tmp_path, FILES)
    DAMAGES[damage](snapshot)
    assert publish.present(plan_of(FILES), tmp_path, thorough=True) is None
    fetched(tmp_path, FILES)
    assert not do(tmp_path).already_present
    assert {path: (snapshot / path).read_bytes() for path in FILES} == FILES
    assert tree(tmp_path / ".removed") == []


def test_killed_between_taking_the_damaged_one_away_and_the_rename_the_next_run_finishes(tmp_path: Path) -> None:
    snapshot = published(tmp_path, FILES)
    _changed(snapshot)
    fetched(tmp_path, FILES)
    command = [sys.executable, "-m", "tests.agent.acquire.dying", str(tmp_path), "replaced"]
    assert subprocess.run(command, cwd=REPOSITORY, timeout=30, check=False).returncode == -signal.SIGKILL
    assert not snapshot.exists(), "nobody may go on reading the damaged one"
    assert not do(tmp_path).already_present
    assert {path: (snapshot / path).read_bytes() for path in FILES} == FILES
    assert tree(tmp_path / ".removed") == []


@pytest.mark.parametrize("link", ["models", "models/org", "models/org/model", f"models/org/model/{COMMIT}"], ids=str)
def test_a_link_on_the_way_to_a_snapshot_is_told_before_anything_is_fetched(tmp_path: Path, link: str) -> None:
    published(tmp_path, FILES)
    (tmp_path / link).rename(tmp_path / "elsewhere")
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failed) as caught:
        publish.present(plan_of(FILES), tmp_path)
    assert caught.value.code == "storage_error"
