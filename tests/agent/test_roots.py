"""A storage root is proven, not believed: which folders may be one, and what an approval leaves there."""

import json
import os
from pathlib import Path

import pytest

from agent import wire
from agent.acquire.places import MARKER
from agent.roots import Ground
from tests.agent.proving import (
    NODE,
    ROOT,
    approved,
    fault,
    order,
    prove,
)


def test_an_approval_makes_the_folder_marks_it_and_tells_its_device(ground: Ground) -> None:
    proof = prove(ground, order(ground, "registry/models", approve=True))
    folder = ground.artifact_dir / "registry/models"
    assert proof.approved
    assert proof.fault is None
    status = folder.stat()
    assert proof.device_id == f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    assert (proof.filesystem, proof.mount_point) == ("ext4", "/")
    assert proof.free_bytes.value
    assert proof.total_bytes.value
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o755, 0o755]
    marker = folder / MARKER
    assert marker.stat().st_mode & 0o777 == 0o444
    said = json.loads(marker.read_text())
    assert said == {"root_id": str(ROOT), "node_id": str(NODE), "approved_at": "2026-03-01T12:00:00+00:00"}
    assert os.listdir(folder) == [MARKER]


def test_an_approved_root_is_proven_from_then_on(ground: Ground) -> None:
    wanted = approved(ground)
    proof = prove(ground, wanted)
    assert proof.fault is None
    assert not proof.approved


def test_a_folder_that_was_never_approved_is_not_proven(ground: Ground) -> None:
    (ground.artifact_dir / "models").mkdir()
    assert fault(ground, order(ground)) == "marker_missing"
    assert os.listdir(ground.artifact_dir / "models") == []


def test_without_an_approval_no_folder_is_made(ground: Ground) -> None:
    assert fault(ground, order(ground)) == "missing"
    assert os.listdir(ground.artifact_dir) == []


def test_the_whole_artifact_volume_may_be_a_root(ground: Ground) -> None:
    whole = wire.RootOrder(root_id=ROOT, path=str(ground.artifact_dir), approve=True)
    assert prove(ground, whole).approved
    assert (ground.artifact_dir / MARKER).exists()


def test_the_artifact_volume_itself_may_be_reached_by_a_link(ground: Ground, tmp_path: Path) -> None:
    """Where the operator has it is his; below it nothing is followed."""
    (tmp_path / "volume").symlink_to(ground.artifact_dir)
    moved = Ground(node_id=NODE, artifact_dir=tmp_path / "volume", system=ground.system)
    assert fault(moved, approved(moved)) is None


@pytest.mark.parametrize("place", ["models", "way/models"], ids=["itself", "on-the-way"])
@pytest.mark.parametrize("approve", [True, False], ids=["approving", "watching"])
def test_a_link_is_no_root_and_nothing_is_written_through_it(
    ground: Ground, tmp_path: Path, place: str, approve: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "models").mkdir(parents=True)
    (ground.artifact_dir / place.split("/")[0]).symlink_to(elsewhere)
    assert fault(ground, order(ground, place, approve=approve)) == "a_link"
    assert [name for _, _, files in os.walk(elsewhere) for name in files] == []


@pytest.mark.parametrize("name", ["models", "models/deep"], ids=["itself", "on-the-way"])
def test_a_file_is_no_root(ground: Ground, name: str) -> None:
    (ground.artifact_dir / "models").write_text("x")
    assert fault(ground, order(ground, name, approve=True)) == "not_a_folder"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc",
        "relative",
        "{volume}/../x",
        "{volume}//x",
        "{volume}/x/",
        "{volume}/./x",
        "{volume}x",
        "{volume}/\0",
    ],
)
def test_what_lies_outside_the_artifact_volume_is_never_touched(ground: Ground, path: str) -> None:
    wanted = wire.RootOrder(root_id=ROOT, path=path.format(volume=ground.artifact_dir), approve=True)
    assert fault(ground, wanted) == "outside_volumes"
    assert os.listdir(ground.artifact_dir) == []


def test_an_artifact_volume_that_is_not_there_is_told(ground: Ground) -> None:
    ground.artifact_dir.rmdir()
    assert fault(ground, order(ground, approve=True)) == "missing"
    assert not ground.artifact_dir.exists()
