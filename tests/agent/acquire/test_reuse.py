"""Files that lie on this server already are linked or copied instead of fetched, once their bytes are proven."""

import os
from pathlib import Path

import pytest

from agent.acquire.disk import candidates, paths, reuse
from agent.acquire.terms import Brake, Plan, PlannedFile, Stopped, Tally
from tests.agent.acquire.samples import COMMIT, OTHER_COMMIT, plan_of, published

WEIGHTS = b"weights" * 1000
FILES = {"config.json": b"{}", "d/model.safetensors": WEIGHTS}
RENAMED = {"config.json": b"[]", "other/name.safetensors": WEIGHTS}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root of its own."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The Hub library's cache volume, empty."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def goal(root: Path, path: str = "other/name.safetensors") -> Path:
    """Where a job wants it."""
    return root / ".partial" / "job" / "snapshot" / path


def weights(plan: Plan) -> PlannedFile:
    """The large file of a plan."""
    return next(file for file in plan.files if file.sha256)


def cached(cache: Path, plan: Plan, content: bytes = WEIGHTS, *, below: str = "hub") -> Path:
    """A blob as the library keeps it."""
    blob = cache / below / "models--org--model" / "blobs" / weights(plan).digest
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return blob


def take(root: Path, source: Path, tally: Tally | None = None, brake: Brake | None = None) -> bool | None:
    """Bring the large file of RENAMED."""
    file = weights(plan_of(RENAMED))
    return reuse.take(file, source, goal(root), brake or Brake(), tally or Tally(), root=root)


def test_a_file_published_under_another_commit_and_name_is_found(root: Path, cache: Path) -> None:
    snapshot = published(root, FILES, commit=OTHER_COMMIT)
    found = candidates.find(plan_of(RENAMED), root=root, hf_cache=cache)
    assert found == {"other/name.safetensors": [snapshot / "d/model.safetensors"]}


def test_a_file_of_another_repository_is_found(root: Path, cache: Path) -> None:
    published(root, FILES, repo_id="gpt2")
    assert list(candidates.find(plan_of(FILES), root=root, hf_cache=cache)) == ["config.json", "d/model.safetensors"]


def test_the_snapshot_itself_comes_first_for_it_may_be_damaged_in_one_file_only(root: Path, cache: Path) -> None:
    snapshot = published(root, FILES)
    other = published(root, FILES, commit=OTHER_COMMIT)
    (snapshot / "config.json").unlink()
    found = candidates.find(plan_of(FILES), root=root, hf_cache=cache)
    weights = "d/model.safetensors"
    assert found == {"config.json": [other / "config.json"], weights: [snapshot / weights, other / weights]}


def test_of_a_file_that_lies_in_many_places_a_few_are_tried(root: Path, cache: Path) -> None:
    for number in range(10):
        published(root, FILES, commit=f"{number}" * 40)
    found = candidates.find(plan_of(FILES), root=root, hf_cache=cache)
    assert [len(places) for places in found.values()] == [4, 4]


@pytest.mark.parametrize("below", ["hub", "."], ids=["HF_HOME", "HF_HUB_CACHE"])
def test_a_blob_of_the_hubs_cache_is_found_by_its_digest(root: Path, cache: Path, below: str) -> None:
    plan = plan_of(RENAMED)
    blob = cached(cache, plan, below=below)
    assert candidates.find(plan, root=root, hf_cache=cache) == {"other/name.safetensors": [blob]}


@pytest.mark.parametrize("fault", ["short", "link", "folder"])
def test_what_cannot_be_the_blob_is_no_candidate(root: Path, cache: Path, fault: str) -> None:
    plan = plan_of(RENAMED)
    blob = cached(cache, plan, WEIGHTS[1:])
    if fault != "short":
        blob.unlink()
    if fault == "link":
        blob.symlink_to("/etc/passwd")
    if fault == "folder":
        blob.mkdir()
    assert candidates.find(plan, root=root, hf_cache=cache) == {}


def test_without_any_cache_or_snapshot_nothing_is_found(root: Path, tmp_path: Path) -> None:
    assert candidates.find(plan_of(FILES), root=root, hf_cache=tmp_path / "absent") == {}


def test_an_unreadable_manifest_or_a_linked_folder_is_passed_over(root: Path, cache: Path, tmp_path: Path) -> None:
    published(tmp_path / "foreign", FILES)
    (root / "models").mkdir()
    (root / "models" / "org").symlink_to(tmp_path / "foreign" / "models" / "org")
    (root / "models" / "a" / "b" / COMMIT).mkdir(parents=True)
    (root / "models" / "a" / "b" / COMMIT / "manifest.json").write_text("{}")
    assert candidates.find(plan_of(RENAMED), root=root, hf_cache=cache) == {}


def test_a_published_file_gets_a_second_name(root: Path) -> None:
    snapshot = published(root, FILES, commit=OTHER_COMMIT)
    tally = Tally()
    assert take(root, snapshot / "d/model.safetensors", tally)
    assert goal(root).samefile(snapshot / "d/model.safetensors")
    assert (tally.bytes_done, tally.bytes_reused, tally.files_done, tally.bytes_fetched) == (7000, 7000, 1, 0)


def test_a_blob_of_the_cache_is_copied(root: Path, cache: Path) -> None:
    blob = cached(cache, plan_of(RENAMED))
    blob.chmod(0o444)
    tally = Tally()
    assert take(root, blob, tally)
    assert goal(root).read_bytes() == WEIGHTS
    assert not goal(root).samefile(blob)
    assert (tally.bytes_done, tally.bytes_reused, tally.files_done) == (7000, 7000, 1)


def test_a_file_that_somebody_may_still_write_to_is_copied(root: Path) -> None:
    source = published(root, FILES, commit=OTHER_COMMIT) / "d/model.safetensors"
    source.chmod(0o644)
    assert take(root, source)
    assert not goal(root).samefile(source)


def test_where_links_cannot_be_made_it_is_copied(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    source = published(root, FILES, commit=OTHER_COMMIT) / "d/model.safetensors"
    monkeypatch.setattr(paths.Tree, "link", refuse)
    assert take(root, source)
    assert goal(root).read_bytes() == WEIGHTS
    assert not goal(root).samefile(source)


def test_what_would_have_to_be_copied_waits_until_room_is_counted(root: Path, cache: Path) -> None:
    linked = published(root, FILES, commit=OTHER_COMMIT)
    plan, folder = plan_of({**RENAMED, "config.json": b"{}", "third.json": b"[1]"}), goal(root, "x").parent
    blob = cached(cache, plan)
    here = {"config.json": [linked / "config.json"], "other/name.safetensors": [blob], "third.json": [cache / "absent"]}

    def bring(what: reuse.Candidates, *, copies: bool) -> tuple[list[str], reuse.Candidates]:
        more = {"root": root, "folder": folder, "brake": Brake(), "tally": Tally(), "still": lambda: None}
        return reuse.take_all(plan, what, copies=copies, **more)  # type: ignore[arg-type]

    taken, left = bring(here, copies=False)
    assert (taken, left) == (["config.json"], {"other/name.safetensors": [blob]})
    assert not (folder / "other/name.safetensors").exists()
    assert bring(left, copies=True) == (["other/name.safetensors"], {})


def test_where_the_first_place_has_lost_it_the_next_is_tried(root: Path) -> None:
    snapshot, other = published(root, FILES), published(root, FILES, commit=OTHER_COMMIT)
    (other / "d/model.safetensors").unlink()
    (other / "d/model.safetensors").write_bytes(b"W" + WEIGHTS[1:])
    (other / "d/model.safetensors").chmod(0o444)
    here = {"other/name.safetensors": [other / "d/model.safetensors", snapshot / "d/model.safetensors"]}
    tally = Tally()
    more = {"root": root, "folder": goal(root, "x").parent, "brake": Brake(), "tally": tally, "still": lambda: None}
    taken, _ = reuse.take_all(plan_of(RENAMED), here, copies=False, **more)  # type: ignore[arg-type]
    assert taken == ["other/name.safetensors"]
    assert (tally.bytes_done, tally.bytes_reused) == (7000, 7000)
    assert goal(root).samefile(snapshot / "d/model.safetensors")


@pytest.mark.parametrize("where", ["published", "cache"])
def test_a_candidate_with_other_bytes_is_not_taken_and_leaves_no_trace(root: Path, cache: Path, where: str) -> None:
    if where == "published":
        source = published(root, FILES, commit=OTHER_COMMIT) / "d/model.safetensors"
        source.chmod(0o644)
        source.write_bytes(b"W" + WEIGHTS[1:])
        source.chmod(0o444)
    else:
        source = cached(cache, plan_of(RENAMED), b"W" + WEIGHTS[1:])
    tally = Tally()
    assert not take(root, source, tally)
    assert os.listdir(goal(root).parent) == []
    assert (tally.bytes_done, tally.bytes_reused, tally.files_done) == (0, 0, 0)
    assert source.exists()


@pytest.mark.parametrize("fault", ["gone", "link", "folder", "short"])
def test_a_candidate_that_is_gone_or_no_file_is_not_taken(root: Path, cache: Path, fault: str) -> None:
    source = cached(cache, plan_of(RENAMED), WEIGHTS[1:])
    if fault != "short":
        source.unlink()
    if fault == "link":
        (cache / "real").write_bytes(WEIGHTS)
        source.symlink_to(cache / "real")
    if fault == "folder":
        source.mkdir()
    assert not take(root, source)


def test_a_folder_of_a_snapshot_that_was_moved_away_and_linked_is_no_source_and_no_failure(
    root: Path, tmp_path: Path
) -> None:
    snapshot = published(root, FILES, commit=OTHER_COMMIT)
    (snapshot / "d").rename(tmp_path / "moved")
    (snapshot / "d").symlink_to(tmp_path / "moved")
    tally = Tally()
    assert not take(root, snapshot / "d/model.safetensors", tally)
    assert not goal(root).exists()
    assert tally.bytes_done == 0


def test_a_file_that_an_earlier_run_left_is_replaced(root: Path, cache: Path) -> None:
    goal(root).parent.mkdir(parents=True)
    goal(root).write_bytes(b"old")
    assert take(root, cached(cache, plan_of(RENAMED)))
    assert goal(root).read_bytes() == WEIGHTS


def test_nothing_is_brought_through_a_link(root: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".partial").symlink_to(tmp_path / "outside")
    with pytest.raises(NotADirectoryError):
        take(root, cached(cache, plan_of(RENAMED)))
    assert os.listdir(tmp_path / "outside") == []


def test_a_pulled_brake_ends_a_copy_without_a_trace(root: Path, cache: Path) -> None:
    brake, tally = Brake(), Tally()
    brake.pull("cancelled")
    with pytest.raises(Stopped):
        take(root, cached(cache, plan_of(RENAMED)), tally, brake)
    assert os.listdir(goal(root).parent) == []
    assert tally.bytes_done == 0
