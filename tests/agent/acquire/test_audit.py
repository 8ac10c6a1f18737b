"""Verifying reads every byte of a published snapshot again, and names what is not what it was."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from agent import wire
from agent.acquire.disk import audit
from agent.acquire.terms import Brake, Failed, Stopped, Tally
from tests.agent.acquire.samples import COMMIT, published, snapshot_order

FILES = {"config.json": b"{}", "d/model.safetensors": b"weights" * 1000, "empty.txt": b""}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A published one, that this test may change."""
    folder = published(tmp_path, FILES)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def verify(root: Path, tally: Tally | None = None, **changes: Any) -> wire.Verified:
    """Read it again."""
    order = snapshot_order(wire.VerifyOrder, root, **changes)
    return audit.verify(order, root=root, brake=Brake(), tally=tally or Tally())


def test_a_snapshot_as_it_was_published_is_whole(tmp_path: Path, snapshot: Path) -> None:
    tally = Tally()
    found = verify(tmp_path, tally)
    assert (found.files, found.bytes, found.damaged, found.missing) == (3, 7002, [], False)
    assert (tally.phase, tally.commit, tally.bytes_total, tally.files_total) == ("verify", COMMIT, 7002, 3)
    assert (tally.bytes_done, tally.files_done, tally.bytes_fetched, tally.bytes_reused) == (7002, 3, 0, 0)


def flip(path: Path) -> None:
    """Change one bit."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace_by_link(path: Path) -> None:
    """The right bytes, but elsewhere."""
    path.rename(path.parent / "moved")
    path.symlink_to("moved")


def replace_by_folder(path: Path) -> None:
    """No file any more."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "harm",
    [flip, Path.unlink, replace_by_link, replace_by_folder, lambda path: path.write_bytes(path.read_bytes() + b"x")],
    ids=["a-bit", "gone", "link", "folder", "longer"],
)
def test_a_file_that_changed_is_named(tmp_path: Path, snapshot: Path, harm: Any) -> None:
    harm(snapshot / "d" / "model.safetensors")
    found = verify(tmp_path)
    assert (found.damaged, found.missing) == (["d/model.safetensors"], False)


def test_a_folder_that_became_a_link_damages_what_lay_in_it(tmp_path: Path, snapshot: Path) -> None:
    (snapshot / "d").rename(snapshot / "e")
    (snapshot / "d").symlink_to("e")
    assert verify(tmp_path).damaged == ["d/model.safetensors"]


def test_a_pipe_in_the_place_of_a_file_does_not_hang(tmp_path: Path, snapshot: Path) -> None:
    (snapshot / "config.json").unlink()
    os.mkfifo(snapshot / "config.json")
    assert verify(tmp_path).damaged == ["config.json"]


def test_no_snapshot_is_told_as_missing(tmp_path: Path) -> None:
    assert verify(tmp_path).missing


@pytest.mark.parametrize(
    "content", [None, b"", b"{}", b'{"files": []}', b"\xff"], ids=["gone", "empty", "object", "other", "bytes"]
)
def test_without_its_manifest_a_snapshot_is_damaged(tmp_path: Path, snapshot: Path, content: bytes | None) -> None:
    (snapshot / "manifest.json").unlink()
    if content is not None:
        (snapshot / "manifest.json").write_bytes(content)
    assert verify(tmp_path).damaged == ["manifest.json"]


def test_a_manifest_that_is_not_the_one_that_was_told_is_damaged(tmp_path: Path, snapshot: Path) -> None:
    digest = hashlib.sha256((snapshot / "manifest.json").read_bytes()).hexdigest()
    assert verify(tmp_path, manifest_sha256=digest).damaged == []
    assert verify(tmp_path, manifest_sha256="0" * 64).damaged == ["manifest.json"]


def test_what_a_runtime_left_beside_the_files_is_no_damage(tmp_path: Path, snapshot: Path) -> None:
    (snapshot / "cache").mkdir()
    (snapshot / "cache" / "compiled").write_text("x")
    assert verify(tmp_path).damaged == []


def test_verifying_stops_when_it_is_told(tmp_path: Path, snapshot: Path) -> None:
    brake = Brake()
    brake.pull("cancelled")
    with pytest.raises(Stopped):
        audit.verify(snapshot_order(wire.VerifyOrder, tmp_path), root=tmp_path, brake=brake, tally=Tally())


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshot": "../outside"},
        {"snapshot": f"/models/org/model/{COMMIT}"},
        {"snapshot": f"models/org/model/{COMMIT}/d"},
        {"snapshot": f"models/org/other/{COMMIT}"},
        {"snapshot": f"models/org/model/{'a' * 40}"},
        {"snapshot": f"models/org/model/{COMMIT}.nonsense"},
        {"snapshot": f"models/org/../model/{COMMIT}", "repo_id": "org/../model"},
        {"commit": ""},
    ],
    ids=str,
)
def test_an_order_that_points_elsewhere_is_refused(tmp_path: Path, snapshot: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(Failed) as caught:
        verify(tmp_path, **changes)
    assert caught.value.code == "unsupported"


def test_a_root_that_does_not_answer_says_so(tmp_path: Path) -> None:
    with pytest.raises(Failed) as caught:
        verify(tmp_path / "gone")
    assert caught.value.code == "storage_error"
