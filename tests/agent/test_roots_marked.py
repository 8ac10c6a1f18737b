"""The folder that was approved is known by its marker and its disk; whatever only looks like it has a name."""

import json
import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from agent import roots, wire
from agent.acquire.places import MARKER
from agent.roots import Ground
from tests.agent.proving import (
    NOW,
    OTHER,
    ROOT,
    approved,
    fault,
    order,
)


def test_an_empty_folder_in_the_place_of_the_disk_is_not_the_root(ground: Ground) -> None:
    """Field case 59: the mount is gone, Docker made an empty folder."""
    wanted = approved(ground)
    (ground.artifact_dir / "models").rename(ground.artifact_dir / "unmounted")
    (ground.artifact_dir / "models").mkdir()
    assert fault(ground, wanted) == "marker_missing"
    assert os.listdir(ground.artifact_dir / "models") == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b'{"root_id": "x"}', b"[" * 5000], ids=range(7)
)
def test_a_damaged_marker_is_as_good_as_none_and_an_approval_mends_it(ground: Ground, content: bytes) -> None:
    wanted = approved(ground)
    marker = ground.artifact_dir / "models" / MARKER
    marker.unlink()
    marker.write_bytes(content)
    assert fault(ground, wanted) == "marker_missing"
    approved(ground)
    assert fault(ground, wanted) is None


def test_a_marker_that_is_a_link_is_none(ground: Ground, tmp_path: Path) -> None:
    wanted = approved(ground)
    marker = ground.artifact_dir / "models" / MARKER
    marker.rename(tmp_path / "kept")
    marker.symlink_to(tmp_path / "kept")
    assert fault(ground, wanted) == "marker_missing"


def test_the_marker_of_another_root_is_foreign_to_watching_and_approving(ground: Ground) -> None:
    approved(ground)
    other = wire.RootOrder(root_id=OTHER, path=str(ground.artifact_dir / "models"))
    assert fault(ground, other) == "marker_foreign"
    assert fault(ground, msgspec.structs.replace(other, approve=True)) == "marker_foreign"
    said = json.loads((ground.artifact_dir / "models" / MARKER).read_text())
    assert said["root_id"] == str(ROOT)


def test_the_marker_of_a_retired_root_of_this_node_is_replaced(ground: Ground) -> None:
    approved(ground)
    path = str(ground.artifact_dir / "models")
    other = wire.RootOrder(root_id=OTHER, path=path, approve=True, replaces=[ROOT])
    assert fault(ground, other) is None
    assert json.loads((ground.artifact_dir / "models" / MARKER).read_text())["root_id"] == str(OTHER)


def test_the_marker_that_another_node_wrote_for_that_root_is_not_replaced(ground: Ground) -> None:
    approved(Ground(node_id=OTHER, artifact_dir=ground.artifact_dir, system=ground.system))
    path = str(ground.artifact_dir / "models")
    other = wire.RootOrder(root_id=OTHER, path=path, approve=True, replaces=[ROOT])
    assert fault(ground, other) == "marker_foreign"


def test_the_same_root_of_another_node_is_foreign_until_it_is_approved(ground: Ground) -> None:
    wanted = approved(ground)
    other = Ground(node_id=OTHER, artifact_dir=ground.artifact_dir, system=ground.system)
    assert fault(other, wanted) == "marker_foreign"
    assert fault(other, approved(other)) is None


def test_an_approval_again_replaces_the_old_marker(ground: Ground) -> None:
    approved(ground)
    roots.prove(order(ground, approve=True), ground, now=NOW + timedelta(days=1))
    said = json.loads((ground.artifact_dir / "models" / MARKER).read_text())
    assert said["approved_at"] == "2026-03-02T12:00:00+00:00"
    assert os.listdir(ground.artifact_dir / "models") == [MARKER]


@pytest.mark.parametrize(
    ("device_id", "fsid", "expected"),
    [
        ("same", "same", None),
        ("other", "same", None),  # a restart gave the disk another number
        ("same", "other", None),  # the file system makes up its id at each mount
        ("other", "other", "device_changed"),
        ("other", "", "device_changed"),  # it never had one
        ("", "", None),
    ],
)
def test_another_disk_is_told_by_device_and_file_system_id(
    ground: Ground, device_id: str, fsid: str, expected: str | None
) -> None:
    wanted = approved(ground)
    recorded = {
        "device_id": {"same": wanted.device_id, "other": "250:99", "": ""}[device_id],
        "fsid": {"same": wanted.fsid, "other": "deadbeef", "": ""}[fsid],
    }
    assert fault(ground, msgspec.structs.replace(wanted, **recorded)) == expected
