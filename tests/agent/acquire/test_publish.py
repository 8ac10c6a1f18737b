"""A verified snapshot becomes visible whole, read-only and listed, or not at all, wherever publishing is broken off."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard, get_local_safetensors_metadata

from agent import wire
from agent.acquire.disk import paths, publish, remove
from agent.acquire.terms import Failed
from tests.agent.acquire.dying import FILES
from tests.agent.acquire.samples import (
    COMMIT,
    JOB,
    NOW,
    OTHER_COMMIT,
    Files,
    fetched,
    order,
    plan_of,
    published,
    safetensors,
    tensor,
)


def do(root: Path, files: Files = FILES, **changes: Any) -> wire.Published:
    """Publish what lies half done."""
    arguments: dict[str, Any] = {
        "root": root,
        "partial": root / ".partial" / str(JOB),
        "order": order(root),
        "bytes_fetched": 7000,
        "bytes_reused": 2,
        "now": NOW,
    }
    return publish.publish(plan_of(files), **(arguments | changes))


def tree(root: Path) -> list[str]:
    """All that lies below a folder, folders with a slash."""
    return sorted(str(p.relative_to(root)) + ("/" if p.is_dir() else "") for p in root.rglob("*"))


def test_a_published_snapshot_lies_under_its_commit_with_its_bytes(tmp_path: Path) -> None:
    fetched(tmp_path, FILES)
    told = do(tmp_path)
    snapshot = tmp_path / "models" / "org" / "model" / COMMIT
    assert told.snapshot == f"models/org/model/{COMMIT}"
    assert {path: (snapshot / path).read_bytes() for path in FILES} == FILES
    assert (told.files, told.bytes, told.already_present) == (2, 7002, False)
    assert (told.bytes_fetched, told.bytes_reused) == (7000, 2)
    assert tree(snapshot) == ["config.json", "d/", "d/e/", "d/e/model.safetensors", "manifest.json"]


def test_the_hubs_own_library_reads_it_as_a_local_folder(tmp_path: Path) -> None:
    weights = safetensors({"__metadata__": {"format": "pt"}, "w": tensor()})
    snapshot = published(tmp_path, {"model.safetensors": weights, "README.md": b"---\nlicense: mit\n---\n# A model\n"})
    assert get_local_safetensors_metadata(snapshot).files_metadata["model.safetensors"].tensors["w"].shape == [4]
    assert ModelCard.load(snapshot / "README.md").data.license == "mit"


def test_nothing_of_the_job_is_left_behind(tmp_path: Path) -> None:
    fetched(tmp_path, FILES)
    do(tmp_path)
    assert tree(tmp_path / ".partial") == []
    assert remove.partials(tmp_path) == []


def test_all_files_are_read_only_and_all_folders_can_be_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        fetched(tmp_path, FILES)
        do(tmp_path)
    finally:
        os.umask(before)
    modes = {oct(p.stat().st_mode)[-3:] for p in (tmp_path / "models").rglob("*") if p.is_file()}
    folders = {oct(p.stat().st_mode)[-3:] for p in (tmp_path / "models").rglob("*") if p.is_dir()}
    assert (modes, folders) == ({"444"}, {"755"})


def test_the_manifest_lists_every_file_but_itself(tmp_path: Path) -> None:
    snapshot = published(tmp_path, FILES)
    content = (snapshot / "manifest.json").read_bytes()
    told = json.loads(content)
    assert told["files"] == [
        {
            "path": "config.json",
            "size": 2,
            "git_sha1": hashlib.sha1(b"blob 2\0{}").hexdigest(),  # noqa: S324
        },
        {
            "path": "d/e/model.safetensors",
            "size": 7000,
            "sha256": hashlib.sha256(FILES["d/e/model.safetensors"]).hexdigest(),
        },
    ]
    assert (told["repo_id"], told["commit"], told["selection"], told["bytes"]) == ("org/model", COMMIT, "", 7002)
    assert told["published_at"] == "2026-03-04T05:06:07Z"


def test_the_manifests_digest_is_told(tmp_path: Path) -> None:
    fetched(tmp_path, FILES)
    told = do(tmp_path)
    content = (tmp_path / told.snapshot / "manifest.json").read_bytes()
    assert told.manifest_sha256 == hashlib.sha256(content).hexdigest()


def test_a_repositorys_own_manifest_keeps_its_name(tmp_path: Path) -> None:
    files = {"manifest.json": b'{"theirs": 1}', "config.json": b"{}"}
    snapshot = published(tmp_path, files)
    assert (snapshot / "manifest.json").read_bytes() == b'{"theirs": 1}'
    assert len(json.loads((snapshot / "modelforge-manifest.json").read_bytes())["files"]) == 2
    assert publish.present(plan_of(files), tmp_path) is not None


def test_what_an_earlier_run_left_beside_the_files_is_not_published(tmp_path: Path) -> None:
    partial = fetched(tmp_path, FILES | {"manifest.json": b"old", "d/.taking-0": b"x", "stray/deep/x": b"x"})
    (partial / "snapshot" / "link").symlink_to("/etc/passwd")
    do(tmp_path)
    snapshot = tmp_path / "models" / "org" / "model" / COMMIT
    assert tree(snapshot) == ["config.json", "d/", "d/e/", "d/e/model.safetensors", "manifest.json"]


def test_a_file_that_is_missing_or_short_is_not_published(tmp_path: Path) -> None:
    partial = fetched(tmp_path, FILES)
    (partial / "snapshot" / "config.json").write_bytes(b"{")
    with pytest.raises(Failed, match="1 bytes instead of 2") as short:
        do(tmp_path)
    (partial / "snapshot" / "config.json").unlink()
    with pytest.raises(Failed) as missing:
        do(tmp_path)
    assert (short.value.code, missing.value.code) == ("storage_error", "storage_error")
    assert not (tmp_path / "models").exists()


def test_a_link_in_the_place_of_a_file_is_not_published(tmp_path: Path) -> None:
    partial = fetched(tmp_path, FILES)
    (tmp_path / "elsewhere").write_bytes(b"{}")
    (partial / "snapshot" / "config.json").unlink()
    (partial / "snapshot" / "config.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failed) as caught:
        do(tmp_path)
    assert caught.value.code == "storage_error"
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) != 0o444


@pytest.mark.parametrize("link", ["models", "models/org", "models/org/model"], ids=str)
def test_nothing_is_published_through_a_link(tmp_path: Path, link: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    fetched(root, FILES)
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(outside)
    with pytest.raises(Failed) as caught:
        do(root)
    assert caught.value.code == "storage_error"
    assert os.listdir(outside) == []


def test_a_snapshot_that_lies_there_whole_is_left_as_it_is(tmp_path: Path) -> None:
    snapshot = published(tmp_path, FILES)
    before = (snapshot / "config.json").stat().st_ino
    fetched(tmp_path, FILES)
    assert do(tmp_path).already_present
    assert (snapshot / "config.json").stat().st_ino == before
    assert tree(tmp_path / ".partial") == []


def test_a_folder_of_the_repository_may_be_called_as_our_manifest(tmp_path: Path) -> None:
    files = {"manifest.json/x": b"{}"}
    published(tmp_path, files)
    assert publish.present(plan_of(files), tmp_path, thorough=True) is not None


def test_present_tells_of_a_whole_snapshot_by_manifest_and_sizes(tmp_path: Path) -> None:
    assert publish.present(plan_of(FILES), tmp_path) is None
    snapshot = published(tmp_path, FILES)
    found = publish.present(plan_of(FILES), tmp_path)
    assert found is not None
    assert (found.already_present, found.files, found.bytes) == (True, 2, 7002)
    (snapshot / "config.json").chmod(0o644)
    (snapshot / "config.json").write_bytes(b"[]")
    assert publish.present(plan_of(FILES), tmp_path) is not None
    assert publish.present(plan_of(FILES), tmp_path, thorough=True) is None
    (snapshot / "config.json").write_bytes(b"[ ]")
    assert publish.present(plan_of(FILES), tmp_path) is None


def test_another_commit_is_not_present(tmp_path: Path) -> None:
    published(tmp_path, FILES)
    assert publish.present(plan_of(FILES, commit=OTHER_COMMIT), tmp_path) is None


def test_many_files_are_published_like_few(tmp_path: Path) -> None:
    files = {f"d{n % 7}/{n}.json": b"%d" % n for n in range(200)}
    snapshot = published(tmp_path, files)
    assert {path: (snapshot / path).read_bytes() for path in files} == files


def test_a_file_system_without_the_exclusive_rename_publishes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_renameat2", lambda *_: 22)
    snapshot = published(tmp_path, FILES)
    assert (snapshot / "config.json").read_bytes() == b"{}"
