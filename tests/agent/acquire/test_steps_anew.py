"""Jobs about what lies on the disk already: used again, read again, continued, removed."""

import json
import threading
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agent import wire
from agent.acquire import steps
from agent.acquire.disk import guard, remove
from agent.acquire.terms import Failed, Plan
from tests.agent.acquire.acquiring import (
    BIG,
    FILES,
    REPO,
    SMALL,
    always,
    bytes_of,
    let_go_wrong,
    lying_in,
    once,
)
from tests.agent.acquire.attempts import Ordered


def failure(ordered: Ordered) -> Failed:
    with pytest.raises(Failed) as failed:
        ordered.run()
    return failed.value


def test_a_snapshot_that_lies_there_already_is_told_at_once(ordered: Ordered) -> None:
    first = ordered.run().published
    asked = len(ordered.hub.requests)
    ordered.job_id, ordered.told = uuid4(), []
    again = ordered.run().published
    assert first is not None
    assert again is not None
    assert again.already_present
    assert not again.reread
    assert again.manifest_sha256 == first.manifest_sha256
    assert ordered.told == []
    assert len(ordered.hub.requests) <= asked + 2, "nothing but the plan was asked for"


def test_where_the_order_wants_it_what_lies_there_is_read_whole(ordered: Ordered) -> None:
    ordered.run()
    ordered.job_id, ordered.more = uuid4(), {"reread": True}
    again = ordered.run().published
    assert again is not None
    assert (again.already_present, again.reread) == (True, True)
    assert ordered.tally.bytes_done == again.bytes


def test_what_another_snapshot_of_the_root_holds_is_linked_and_not_fetched(ordered: Ordered) -> None:
    ordered.run()
    ordered.repo.commit(dict(FILES) | {SMALL: b'{"model_type": "mistral"}'})
    ordered.job_id = uuid4()
    published = ordered.run().published
    assert published is not None
    assert published.bytes_fetched == len(b'{"model_type": "mistral"}')
    assert published.bytes_reused == published.bytes - published.bytes_fetched
    assert lying_in(ordered.published) == bytes_of(ordered.repo)
    assert (ordered.published / BIG).stat().st_nlink == 2
    assert ordered.tally.bytes_done == published.bytes
    assert ordered.tally.files_done == published.files


def test_what_the_hubs_cache_holds_is_copied_once_it_is_proven(ordered: Ordered, root: Path) -> None:
    content = bytes_of(ordered.repo)[BIG]
    blobs = root.parent / "hf-cache/hub/models--org--model/blobs"
    blobs.mkdir(parents=True)
    (blobs / ordered.repo.files()[BIG].sha256).write_bytes(content)
    published = ordered.run().published
    assert published is not None
    assert published.bytes_reused == len(content)
    assert (ordered.published / BIG).stat().st_nlink == 1


def test_what_lies_in_the_cache_under_a_wrong_name_is_fetched(ordered: Ordered, root: Path) -> None:
    size = len(bytes_of(ordered.repo)[BIG])
    blobs = root.parent / "hf-cache/hub/models--org--model/blobs"
    blobs.mkdir(parents=True)
    (blobs / ordered.repo.files()[BIG].sha256).write_bytes(b"x" * size)
    published = ordered.run().published
    assert published is not None
    assert published.bytes_reused == 0
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


def test_linked_files_need_no_room(ordered: Ordered, monkeypatch: pytest.MonkeyPatch) -> None:
    held, real = [], guard.check

    def check(plan: Plan, **more: Any) -> object:
        held.append((plan.bytes, more["held_bytes"]))
        return real(plan, **more)

    monkeypatch.setattr(guard, "check", check)
    ordered.run()
    ordered.repo.commit(dict(FILES) | {SMALL: b"{}"})
    ordered.job_id = uuid4()
    ordered.run()
    (_, before), (whole, after) = held
    assert before == 0
    assert after == whole - len(b"{}")


@pytest.mark.parametrize("written", ["other-plan", "none", "damaged"])
def test_half_done_files_of_another_plan_are_thrown_away(ordered: Ordered, written: str) -> None:
    folder = ordered.root / f".partial/{ordered.job_id}"
    (folder / "snapshot").mkdir(parents=True)
    (folder / "snapshot/stray").write_text("x")
    said = {"repo_id": REPO, "commit": ordered.repo.sha, "plan_digest": "0" * 64}
    if written != "none":
        (folder / "job.json").write_text(json.dumps(said) if written == "other-plan" else "{")
    rules = let_go_wrong(ordered.hub, always("cdn", status=503))
    assert failure(ordered).code == "source_unavailable"
    assert not (folder / "snapshot/stray").exists()
    assert json.loads((folder / "job.json").read_text())["commit"] == ordered.repo.sha
    assert rules


def test_half_done_files_of_this_plan_are_kept_and_go_on(ordered: Ordered) -> None:
    let_go_wrong(ordered.hub, once("cdn", status=503, file=BIG, after=3, times=1000))
    assert failure(ordered).code == "source_unavailable"
    ordered.hub.mend()
    published = ordered.run().published
    assert published is not None
    assert published.bytes_fetched < published.bytes
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


def half_done(ordered: Ordered) -> None:
    """All small files are whole, and of the large one most."""
    late = lambda asked: bool(asked.range and asked.range[0] >= 2_000_000)  # noqa: E731
    let_go_wrong(ordered.hub, always("cdn", file=BIG, status=503, when=late))
    assert failure(ordered).code == "source_unavailable"
    ordered.hub.mend()


def test_the_first_word_of_another_attempt_says_what_lies_here(ordered: Ordered) -> None:
    half_done(ordered)
    left = ordered.tally.bytes_done
    published = ordered.run().published
    assert published is not None
    assert ordered.here == [0, left]
    assert 1_500_000 < left < published.bytes
    assert ordered.tally.bytes_done == published.bytes, "and none of it is counted twice"
    assert ordered.tally.files_done == published.files


@pytest.mark.parametrize("damage", ["another plan", "no notes", "notes of nothing", "notes of another plan"])
def test_of_what_was_left_only_what_its_notes_say_is_told(ordered: Ordered, damage: str) -> None:
    half_done(ordered)
    folder = ordered.root / f".partial/{ordered.job_id}"
    small = sum(file.size for path, file in ordered.repo.files().items() if path != BIG)
    expected = small
    for note in [*folder.glob("parts/*.json")]:
        if damage == "no notes":
            note.unlink()
        elif damage == "notes of nothing":
            note.write_text("[]")
        elif damage == "notes of another plan":
            note.write_text(json.dumps(json.loads(note.read_text()) | {"plan": "0" * 64}))
    if damage == "another plan":
        (folder / "job.json").write_text(json.dumps({"plan_digest": "0" * 64}))
        expected = 0
    published = ordered.run().published
    assert published is not None
    assert ordered.here == [0, expected]
    assert lying_in(ordered.published) == bytes_of(ordered.repo)


def perform(ordered: Ordered, order: wire.VerifyOrder | wire.RemoveOrder, job_id: UUID | None = None) -> wire.Result:
    """Another kind of job in the same root."""
    job = wire.Job(id=job_id or uuid4(), attempt=1, lease_id=uuid4(), lease_seconds=60, order=order)
    return steps.perform(
        job,
        tools=None,  # type: ignore[arg-type]  # neither kind works with any
        brake=ordered.brake,
        tally=ordered.tally,
        notes=ordered.notes,
        tell=lambda: None,
        still=lambda: None,
    )


def of_snapshot(ordered: Ordered) -> dict[str, object]:
    commit = ordered.repo.sha
    snapshot = f"models/{REPO}/{commit}"
    return {
        "root_id": uuid4(),
        "path": str(ordered.root),
        "snapshot": snapshot,
        "repo_id": REPO,
        "commit": commit,
    }


def test_a_published_snapshot_is_read_again_and_damage_is_named(ordered: Ordered) -> None:
    ordered.run()
    fine = perform(ordered, wire.VerifyOrder(**of_snapshot(ordered)))  # type: ignore[arg-type]
    assert fine.verified is not None
    assert (fine.verified.files, fine.verified.damaged, fine.commit) == (len(FILES), [], ordered.repo.sha)
    (ordered.published / SMALL).chmod(0o644)
    (ordered.published / SMALL).write_text("{}")
    bad = perform(ordered, wire.VerifyOrder(**of_snapshot(ordered)))  # type: ignore[arg-type]
    assert bad.verified is not None
    assert bad.verified.damaged == [SMALL]


def test_a_snapshot_is_removed_and_removed_again_without_harm(ordered: Ordered) -> None:
    ordered.run()
    order = wire.RemoveOrder(**of_snapshot(ordered))  # type: ignore[arg-type]
    for _ in range(2):
        assert perform(ordered, order).outcome == "succeeded"
        assert [path for path in ordered.root.rglob("*") if path.is_file()] == [ordered.root / ".modelforge-root"]
        assert list((ordered.root / "models").iterdir()) == []


def test_two_deletions_of_one_folder_bear_each_other(root: Path) -> None:
    """A job finishes what was broken off while the agent forgets half-done files."""
    for number in range(2000):
        folder = root / f".removed/job.partial/{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).touch()
    errors: list[Exception] = []

    def drop(number: int) -> None:
        try:
            remove.tidy(root, []) if number % 2 else remove.finish_removals(root)
        except Failed as failed:
            errors.append(failed)

    threads = [threading.Thread(target=drop, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert errors == []
    assert list((root / ".removed").iterdir()) == []
