"""The manifest beside a snapshot can be read back, and nothing that is not ours is believed."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.acquire.disk import manifest
from agent.acquire.disk.paths import Tree
from tests.agent.acquire.samples import COMMIT, NOW, OTHER_COMMIT, order, plan_of

FILES = {"config.json": b"{}", "model.safetensors": b"weights"}


def read(tmp_path: Path, content: bytes) -> manifest.Manifest:
    """As it lies in a snapshot."""
    (tmp_path / "s").mkdir(exist_ok=True)
    (tmp_path / "s" / "manifest.json").write_bytes(content)
    with Tree(tmp_path) as tree:
        return manifest.read(tree, "s")[0]


def test_what_was_written_is_read_and_is_of_that_plan(tmp_path: Path) -> None:
    plan = plan_of(FILES)
    found = read(tmp_path, manifest.render(plan, order(allow_formats=["pickle"], ignore_patterns=["*.md"]), NOW))
    assert found.is_of(plan)
    assert not found.is_of(plan_of(FILES, commit=OTHER_COMMIT))
    assert not found.is_of(plan_of(FILES | {"config.json": b"[]"}))
    assert not found.is_of(plan_of({"config.json": b"{}"}))
    assert (found.revision, found.allow_formats, found.ignore_patterns) == ("main", ["pickle"], ["*.md"])


@pytest.mark.parametrize(
    "changes",
    [
        {"modelforge_manifest": 2},
        {"commit": "main"},
        {"repo_id": "../x"},
        {"bytes": -1},
        {"published_at": "yesterday"},
        {"files": [{"path": "../../x", "size": 1, "sha256": "0" * 64}]},
        {"files": [{"path": "x", "size": 1}]},
        {"files": [{"path": "x", "size": -1, "sha256": "0" * 64}]},
        {"files": [{"path": "x", "size": 1, "sha256": "../../x"}]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_manifest_with_what_none_of_ours_has_is_not_believed(tmp_path: Path, changes: dict[str, Any]) -> None:
    ours = json.loads(manifest.render(plan_of(FILES), order(), NOW))
    read(tmp_path, json.dumps(ours).encode())
    with pytest.raises(ValueError, match=r".+"):
        read(tmp_path, json.dumps(ours | changes).encode())


def test_our_name_gives_way_to_the_repositorys() -> None:
    assert manifest.name(["a.json", "d/manifest.json"]) == "manifest.json"
    assert manifest.name(["manifest.json"]) == "modelforge-manifest.json"
    assert manifest.name(["Manifest.JSON"]) == "modelforge-manifest.json"
    assert manifest.name(["manifest.json/x"]) == "modelforge-manifest.json"


def test_a_manifest_that_is_nested_without_end_is_not_believed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested"):
        read(tmp_path, b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_the_commit_is_that_of_the_plan(tmp_path: Path) -> None:
    assert read(tmp_path, manifest.render(plan_of(FILES), order(), NOW)).commit == COMMIT
