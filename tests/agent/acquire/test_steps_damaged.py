"""A damaged snapshot that is ordered again: what is whole stays, only the rest is fetched, one rename replaces it."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.agent.acquire.acquiring import BIG, BIG_BYTES, SMALL, always, bytes_of, let_go_wrong, lying_in, tree
from tests.agent.acquire.attempts import Ordered
from tests.agent.acquire.test_steps_anew import failure


def test_a_damaged_snapshot_is_found_by_reading_it_and_replaced(ordered: Ordered) -> None:
    ordered.run()
    damaged = ordered.published / BIG
    damaged.chmod(0o644)
    with damaged.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\0\1\2\3")
    ordered.job_id = uuid4()
    quick = ordered.run().published
    assert quick is not None
    assert quick.already_present, "a quick look does not see it"
    ordered.job_id, ordered.more = uuid4(), {"reread": True}
    again = ordered.run().published
    assert again is not None
    assert not again.already_present
    assert lying_in(ordered.published) == bytes_of(ordered.repo)
    assert ordered.tally.bytes_done == again.bytes
    assert again.bytes_fetched == BIG_BYTES, "the other files were whole"
    assert again.bytes_reused == again.bytes - BIG_BYTES


def _shorter(published: Path) -> None:
    (published / BIG).chmod(0o644)
    os.truncate(published / BIG, 1000)


def _gone(published: Path) -> None:
    (published / BIG).unlink()


def _without_manifest(published: Path) -> None:
    _gone(published)
    (published / "manifest.json").unlink()


def _writable(published: Path) -> None:
    """Its other files may still be written to by somebody, so that they are copied and not linked."""
    _gone(published)
    for path in published.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("damage", [_shorter, _gone, _without_manifest, _writable])
def test_of_a_damaged_snapshot_only_what_is_damaged_is_fetched(
    ordered: Ordered, damage: Callable[[Path], None]
) -> None:
    ordered.run()
    damage(ordered.published)
    ordered.job_id = uuid4()
    again = ordered.run().published
    assert again is not None
    assert again.bytes_fetched == BIG_BYTES
    assert lying_in(ordered.published) == bytes_of(ordered.repo)
    kept = ordered.published / SMALL
    assert (kept.stat().st_nlink, kept.stat().st_mode & 0o777) == (1, 0o444)
    assert list((ordered.root / ".removed").iterdir()) == []


def test_while_a_damaged_snapshot_is_mended_nothing_of_it_changes(ordered: Ordered) -> None:
    ordered.run()
    _shorter(ordered.published)
    before = tree(ordered.published)
    let_go_wrong(ordered.hub, always("cdn", file=BIG, status=503))
    ordered.job_id = uuid4()
    assert failure(ordered).code == "source_unavailable"
    assert tree(ordered.published) == before
    ordered.hub.mend()
    ordered.run()
    assert lying_in(ordered.published) == bytes_of(ordered.repo)
