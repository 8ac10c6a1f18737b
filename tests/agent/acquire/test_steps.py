"""An acquisition from its order to its result: what is told and written, when, and what is left of it."""

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import wire
from agent.acquire.terms import Failed, Notes, Stopped
from tests.agent.acquire.acquiring import (
    BIG,
    BIG_BYTES,
    FILES,
    REPO,
    SMALL,
    always,
    bytes_of,
    let_go_wrong,
    lying_in,
    tree,
)
from tests.agent.acquire.attempts import Ordered
from tests.hub.contents import Generated, weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts.ports import until


def failure(ordered: Ordered) -> Failed:
    with pytest.raises(Failed) as failed:
        ordered.run()
    return failed.value


def test_a_snapshot_arrives_and_only_the_snapshot_is_left(ordered: Ordered) -> None:
    result = ordered.run()
    assert result.outcome == "succeeded"
    assert result.commit == ordered.repo.sha
    published = result.published
    assert published is not None
    assert ordered.root / published.snapshot == ordered.published
    assert lying_in(ordered.published) == bytes_of(ordered.repo)
    total = sum(map(len, bytes_of(ordered.repo).values()))
    assert (published.files, published.bytes, published.bytes_fetched) == (len(FILES), total, total)
    assert not published.already_present
    assert (ordered.tally.bytes_done, ordered.tally.files_done) == (total, len(FILES))
    assert [path.name for path in ordered.root.glob(".partial/*")] == []


def test_the_commit_is_told_before_the_first_byte_is_asked_for_or_written(ordered: Ordered) -> None:
    seen: list[tuple[str, list[str]]] = []
    ordered.told = _Watching(lambda commit: seen.append((commit, [p.name for p in ordered.root.rglob("*")])))
    ordered.run()
    assert seen == [(ordered.repo.sha, [".modelforge-root"])]


class _Watching(list[tuple[str, int]]):
    """A list that is looked at while it grows."""

    def __init__(self, look: "object") -> None:
        super().__init__()
        self._look = look

    def append(self, told: tuple[str, int]) -> None:
        assert told[1] == 0
        self._look(told[0])  # type: ignore[operator]


def test_a_job_that_is_not_heard_brings_nothing(ordered: Ordered) -> None:
    def stop(_: str) -> None:
        raise Stopped("lease_lost")

    ordered.told = _Watching(stop)
    with pytest.raises(Stopped):
        ordered.run()
    assert [path.name for path in ordered.root.rglob("*")] == [".modelforge-root"]


def test_a_pinned_commit_is_brought_though_the_branch_has_moved(ordered: Ordered) -> None:
    """Field case 67."""
    pinned, then = ordered.repo.sha, bytes_of(ordered.repo)
    ordered.repo.commit({SMALL: b"{}"})
    ordered.more = {"commit": pinned}
    result = ordered.run()
    assert result.commit == pinned
    assert lying_in(ordered.root / f"models/{REPO}/{pinned}") == then


def test_a_preflight_answers_and_writes_nothing(ordered: Ordered, root: Path) -> None:
    before = tree(root.parent)
    ordered.more = {"preflight_only": True, "reserve_bytes": 1000}
    result = ordered.run()
    found = result.preflight
    assert found is not None
    assert (found.files, found.largest_file) == (len(FILES), BIG)
    assert found.bytes == sum(map(len, bytes_of(ordered.repo).values()))
    assert found.needed_bytes == found.bytes + 1000
    assert found.largest_bytes >= BIG_BYTES
    assert found.fits
    assert not found.gated
    assert found.refused == ""
    assert result.commit == ordered.repo.sha
    assert ordered.told == []
    assert tree(root.parent) == before


def test_a_preflight_tells_what_would_be_refused_and_what_would_not_fit(hub: Hub, root: Path) -> None:
    repo = hub.repo(REPO, {"model.bin": Generated(100_000, seed=1)})
    found = Ordered(hub, root, repo, more={"preflight_only": True, "reserve_bytes": 2**60}).run().preflight
    assert found is not None
    assert "model.bin" in found.refused
    assert found.bytes == 100_000
    assert not found.fits


LIES: dict[str, list[dict[str, Any]]] = {
    "a zero byte": [{"rfilename": "a\0b", "size": 10**9}],
    "more bytes than there are": [{"rfilename": "a", "size": 10**30}],
    "too many bytes together": [{"rfilename": f"a{n}", "size": 2**62} for n in range(5)],
    "a name without an end": [{"rfilename": "a" * 9000, "size": 10**9}],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_preflight_of_a_listing_that_lies_tells_what_is_refused_in_figures_that_are_taken(
    ordered: Ordered, lie: str
) -> None:
    def edit(told: Any) -> Any:
        told["siblings"] += [row | {"blobId": "a" * 40} for row in LIES[lie]]
        return told

    ordered.hub.fault("info", Fault(edit=edit))
    ordered.more = {"preflight_only": True}
    body = wire.encode(ordered.run())
    assert b"u0000" not in body
    found = msgspec.json.decode(body, type=wire.Result).preflight
    assert found is not None
    assert found.refused
    assert (found.files, found.largest_file) == (len(FILES), BIG)


def test_a_preflight_of_what_does_not_exist_fails(ordered: Ordered) -> None:
    ordered.more = {"preflight_only": True, "revision": "nowhere"}
    assert failure(ordered).code == "not_found"


@pytest.mark.parametrize("why", ["cancelled", "released", "lease_lost"])
def test_a_job_that_is_told_to_stop_publishes_nothing_and_keeps_what_it_has(ordered: Ordered, why: str) -> None:
    let_go_wrong(ordered.hub, always("cdn", file=BIG, bytes_per_second=50_000))
    watch = threading.Thread(target=_pull_once_bytes_come, args=(ordered, why), daemon=True)
    watch.start()
    with pytest.raises(Stopped) as stopped:
        ordered.run()
    watch.join(5)
    assert stopped.value.why == why
    assert not (ordered.root / "models").exists()
    assert list(ordered.root.glob(".partial/*/parts/*.part"))


def _pull_once_bytes_come(ordered: Ordered, why: str) -> None:
    until(lambda: ordered.hub.of("cdn", file=BIG), "the big file is asked for", every=0.01)
    ordered.brake.pull(why)


def test_a_pickle_in_a_harmless_name_goes_to_quarantine_and_nothing_is_published(hub: Hub, root: Path) -> None:
    repo = hub.repo(REPO, {SMALL: b"{}", "weights.model": pickle.dumps({"a": [1, 2, 3]})})
    ordered = Ordered(hub, root, repo)
    failed = failure(ordered)
    assert failed.code == "manifest_refused"
    assert "weights.model" in failed.detail
    (kept,) = ordered.notes.quarantined
    assert (kept.path, kept.reason) == ("weights.model", "unsafe_format")
    assert (root.parent / "quarantine" / kept.location).exists()
    assert not (root / "models").exists()


def test_of_very_many_such_files_as_many_go_to_quarantine_as_can_be_told(hub: Hub, root: Path) -> None:
    repo = hub.repo(REPO, {f"{n}.model": pickle.dumps({"a": [n]}) for n in range(wire.MAX_QUARANTINED + 8)})
    ordered = Ordered(hub, root, repo)
    assert failure(ordered).code == "manifest_refused"
    assert len(ordered.notes.quarantined) == wire.MAX_QUARANTINED
    left = root / f".partial/{ordered.job_id}/snapshot"
    assert len(list(left.iterdir())) == 8
    ordered.notes = Notes()
    assert failure(ordered).code == "manifest_refused", "nor is the rest published another time"
    assert not (root / "models").exists()


def test_a_format_that_the_order_allows_is_brought(hub: Hub, root: Path) -> None:
    repo = hub.repo(REPO, {"weights.bin": pickle.dumps({"a": [1, 2, 3]})})
    assert Ordered(hub, root, repo, more={"allow_formats": ["pickle"]}).run().published is not None


def test_an_index_that_names_an_absent_shard_is_no_snapshot(hub: Hub, root: Path) -> None:
    shards = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index = json.dumps({"weight_map": {"a": shards[0], "b": shards[1]}})
    repo = hub.repo(REPO, {"model.safetensors.index.json": index.encode(), shards[0]: weights(1000, seed=1)})
    failed = failure(Ordered(hub, root, repo))
    assert failed.code == "manifest_refused"
    assert shards[1] in failed.detail
    assert not (root / "models").exists()


def test_a_disk_that_refuses_is_told_by_its_name(ordered: Ordered, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("agent.acquire.disk.candidates.find", refuse)
    failed = failure(ordered)
    assert failed.code == "storage_error"
    assert "Input/output error" in failed.detail


def test_a_disk_that_refuses_a_job_that_was_stopped_is_no_failure(
    ordered: Ordered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        ordered.brake.pull("released")
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr("agent.acquire.disk.candidates.find", refuse)
    with pytest.raises(Stopped):
        ordered.run()
