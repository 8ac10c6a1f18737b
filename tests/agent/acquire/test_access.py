"""An engine under another uid can read what is published, and nobody but the agent what is half done or going."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from agent.acquire.disk import access, remove
from agent.acquire.disk.paths import Tree
from tests.agent.acquire.acquiring import BIG, FILES, SMALL, always, bytes_of, let_go_wrong
from tests.agent.acquire.attempts import Ordered
from tests.agent.acquire.samples import JOB, published
from tests.agent.acquire.test_steps_anew import failure


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """One that leaves nothing to others."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def unreadable(root: Path) -> dict[str, str]:
    """What another uid could not reach or read, from models/ down."""
    found = [root / "models", *(root / "models").rglob("*")]
    wanted = {path: 0o755 if path.is_dir() else 0o444 for path in found}
    return {str(path.relative_to(root)): oct(mode(path)) for path in found if mode(path) != wanted[path]}


def from_the_hub(ordered: Ordered) -> None:
    """Every byte comes over the network."""


def by_link(ordered: Ordered) -> None:
    """Most of it lies in another snapshot of the root."""
    ordered.run()
    ordered.repo.commit(dict(FILES) | {SMALL: b"{}"})
    ordered.job_id = uuid4()


def from_the_cache(ordered: Ordered) -> None:
    """The weights lie in the Hub's cache."""
    blobs = ordered.root.parent / "hf-cache/hub/models--org--model/blobs"
    blobs.mkdir(parents=True)
    (blobs / ordered.repo.files()[BIG].sha256).write_bytes(bytes_of(ordered.repo)[BIG])


def from_an_earlier_release(ordered: Ordered) -> None:
    """An agent that made its folders for itself and its group left the job half done, and other snapshots' folders."""
    let_go_wrong(ordered.hub, always("cdn", file=BIG, status=503))
    failure(ordered)
    ordered.hub.mend()
    (ordered.root / "models/org/model").mkdir(parents=True)
    for folder in [*ordered.root.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o750)


@pytest.mark.parametrize("way", [from_the_hub, by_link, from_the_cache, from_an_earlier_release])
def test_a_snapshot_can_be_read_by_every_uid_however_it_came(ordered: Ordered, way: Callable[[Ordered], None]) -> None:
    way(ordered)
    ordered.run()
    assert ordered.published.is_dir()
    assert unreadable(ordered.root) == {}


def test_a_snapshot_that_lies_there_closed_is_opened_when_it_is_ordered_again(ordered: Ordered) -> None:
    ordered.run()
    for folder in ["models/org", "models", str(ordered.published), f"{ordered.published}/tokenizer"]:
        (ordered.root / folder).chmod(0o750)
    ordered.job_id = uuid4()
    again = ordered.run().published
    assert again is not None
    assert again.already_present
    assert unreadable(ordered.root) == {}


def test_folders_that_others_own_are_left_as_they_are(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "models/org").mkdir(parents=True)
    (root / "models").chmod(0o750)
    (root / "models/org").chmod(0o750)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with Tree(root) as tree:
        access.open_way(tree, "models/org")
        access.make_private(tree, "models/org")
    assert [mode(root / way) for way in ("models", "models/org")] == [0o750, 0o750]


@pytest.mark.parametrize("before", [None, 0o750, 0o755], ids=["made", "750", "755"])
def test_half_done_files_are_the_agents_alone(ordered: Ordered, before: int | None) -> None:
    job = ordered.root / f".partial/{ordered.job_id}"
    if before is not None:
        job.mkdir(parents=True)
        for folder in (job, job.parent):
            folder.chmod(before)
    let_go_wrong(ordered.hub, always("cdn", status=503))
    failure(ordered)
    assert [mode(job), mode(job.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("before", [None, 0o755], ids=["made", "755"])
def test_what_is_being_removed_is_the_agents_alone(root: Path, before: int | None) -> None:
    published(root, {"config.json": b"{}"})
    if before is not None:
        (root / ".removed").mkdir()
        (root / ".removed").chmod(before)
    with Tree(root) as tree:
        remove.set_aside(tree, "models/org", f".removed/{JOB}")
    assert mode(root / ".removed") == 0o700
