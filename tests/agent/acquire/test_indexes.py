"""An index that names an absent shard is no snapshot."""

import json
from pathlib import Path

import pytest

from agent.acquire.content.indexes import check_indexes
from agent.acquire.terms import Failed, Plan
from tests.agent.acquire.samples import COMMIT, plan_of

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def index(*shards: str) -> bytes:
    """An index that names these."""
    return json.dumps({"metadata": {}, "weight_map": {f"w{n}": shard for n, shard in enumerate(shards)}}).encode()


def check(tmp_path: Path, files: dict[str, bytes], selection: str = "") -> None:
    """As the folder of a plan of these files."""
    for path, content in files.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    check_indexes(tmp_path, Plan("org/model", COMMIT, plan_of(files).files, selection))


def refusal(tmp_path: Path, files: dict[str, bytes], selection: str = "") -> str:
    """Why it is no snapshot."""
    with pytest.raises(Failed) as caught:
        check(tmp_path, files, selection)
    assert caught.value.code == "manifest_refused"
    return caught.value.detail


def test_an_index_whose_shards_are_all_there_is_whole(tmp_path: Path) -> None:
    check(tmp_path, {"model.safetensors.index.json": index(ONE, TWO, ONE), ONE: b"1", TWO: b"2"})


def test_a_snapshot_without_an_index_is_whole(tmp_path: Path) -> None:
    check(tmp_path, {"config.json": b"{}"})


def test_a_shard_that_the_repository_lacks_is_named(tmp_path: Path) -> None:
    detail = refusal(tmp_path, {"model.safetensors.index.json": index(ONE, TWO), ONE: b"1"})
    assert TWO in detail
    assert "repository does not hold it" in detail


def test_a_shard_that_the_patterns_left_out_is_told_as_such(tmp_path: Path) -> None:
    detail = refusal(tmp_path, {"model.safetensors.index.json": index(ONE, TWO), ONE: b"1"}, selection="a" * 64)
    assert "patterns left it out" in detail


def test_shards_are_named_from_the_indexs_own_folder(tmp_path: Path) -> None:
    check(tmp_path, {"unet/x.safetensors.index.fp16.json": index("a.safetensors"), "unet/a.safetensors": b"1"})
    assert "unet/a.safetensors" in refusal(
        tmp_path, {"unet/x.safetensors.index.fp16.json": index("a.safetensors"), "a.safetensors": b"1"}
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"weight_map": []}',
        b'{"weight_map": {"w": 1}}',
        b'{"weight_map": {"w": []}}',
        b"[" * 100_000,
    ],
    ids=["empty", "list", "no-map", "list-for-map", "number", "unhashable", "deep"],
)
def test_an_index_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "no index" in refusal(tmp_path, {"model.safetensors.index.json": content})


@pytest.mark.parametrize("shard", ["../../etc/passwd", "/etc/passwd", ""], ids=["above", "absolute", "empty"])
def test_an_index_cannot_name_what_lies_elsewhere(tmp_path: Path, shard: str) -> None:
    assert "names the shard" in refusal(tmp_path, {"a/model.safetensors.index.json": index(shard)})


def test_the_index_of_pickled_weights_that_were_left_out_is_not_missed(tmp_path: Path) -> None:
    check(tmp_path, {"pytorch_model.bin.index.json": index("pytorch_model-00001-of-00001.bin")}, selection="a" * 64)
