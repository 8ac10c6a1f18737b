"""A root that is lost in the middle of a job ends it with those words, whichever step runs, and what took its place is
left as it is."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from agent import wire
from agent.acquire import steps
from agent.acquire.places import MARKER
from agent.acquire.terms import Brake, Failed, Stopped
from tests.agent.acquire import grounds
from tests.agent.acquire.acquiring import BIG, FILES, REPO, tree
from tests.agent.acquire.attempts import Ordered
from tests.agent.acquire.grounds import Server, approved
from tests.hub.faults import Fault
from tests.hub.hub import Hub

CHANGES = {
    "the marker is removed": grounds.remove_the_marker,
    "an empty folder": grounds.swap_for_an_empty_folder,
    "a copy with its marker": grounds.swap_for_a_copy,
}


class Hand(Brake):
    """Does something when a job asks its brake in a certain phase for the so-manieth time."""

    def __init__(self, job: Ordered, phase: str, do: Callable[[], object], *, ask: int = 1) -> None:
        super().__init__()
        self._job, self._phase, self._do, self._left = job, phase, do, ask

    def check(self) -> None:
        """As every brake, and it does its thing."""
        super().check()
        if self._job.tally.phase == self._phase:
            self._left -= 1
            if self._left == 0:
                self._do()

    @property
    def done(self) -> bool:
        """Whether it has."""
        return self._left <= 0


@dataclass
class Lost:
    """A job, what becomes of its root meanwhile, and what lay in that place right after."""

    job: Ordered
    server: Server
    change: Callable[[Server], None]
    lost: Event = field(default_factory=Event)
    after: dict[str, Any] | None = None  # where another folder took its place; the job writes into its own on and on

    def lose(self) -> None:
        """Now."""
        before = self.server.root.stat()
        self.change(self.server)
        if not os.path.samestat(before, self.server.root.stat()):
            self.after = tree(self.server.root)
        self.lost.set()

    def ends(self, run: Callable[[], object]) -> None:
        """As it should."""
        with pytest.raises(Failed) as failed:
            run()
        assert self.lost.wait(20), "while the job ran"
        assert failed.value.code == "root_unverified"
        assert failed.value.detail
        assert (self.after is None) == (self.change is grounds.remove_the_marker)
        if self.after is not None:
            assert tree(self.server.root) == self.after


def planning(lost: Lost) -> Callable[[], object]:
    """While the Hub is asked what there is."""
    lost.job.hub.fault("info", Fault(meanwhile=lost.lose), times=1)
    return lost.job.run


def previewing(lost: Lost) -> Callable[[], object]:
    """While it is asked by an order that writes nothing anyway."""
    lost.job.more = {"preflight_only": True}
    return planning(lost)


def telling(lost: Lost) -> Callable[[], object]:
    """While the control plane is told the commit."""
    tell = lost.job._tell

    def told() -> None:
        lost.lose()
        tell()

    lost.job._tell = told  # type: ignore[method-assign]
    return lost.job.run


def fetching(lost: Lost) -> Callable[[], object]:
    """While the last bytes of the largest file come, and all files are begun."""
    lost.job.hub.fault("cdn", Fault(meanwhile=grounds.Once(lost.lose)), file=BIG, after=8)
    return lost.job.run


def looking_at_formats(lost: Lost) -> Callable[[], object]:
    """When the second file is looked at."""
    lost.job.brake = Hand(lost.job, "verify", lost.lose, ask=2)
    return lost.job.run


def publishing(lost: Lost) -> Callable[[], object]:
    """After the last look before the snapshot is published."""
    lost.job.brake = Hand(lost.job, "publish", lost.lose)
    return lost.job.run


def rereading(lost: Lost) -> Callable[[], object]:
    """While a snapshot that lies published is read again."""
    lost.job.run()
    lost.job.more, lost.job.job_id = {"reread": True}, uuid4()
    lost.job.brake = Hand(lost.job, "verify", lost.lose, ask=2)
    return lost.job.run


def verifying(lost: Lost) -> Callable[[], object]:
    """While a job reads a snapshot."""
    return _another(lost, wire.VerifyOrder, "verify")


def removing(lost: Lost) -> Callable[[], object]:
    """While a job deletes a snapshot that it has unpublished."""
    return _another(lost, wire.RemoveOrder, "remove", ask=3)


def about_to_remove(lost: Lost) -> Callable[[], object]:
    """Before it has."""
    return _another(lost, wire.RemoveOrder, "remove")


def _another(
    lost: Lost, kind: type[wire.VerifyOrder] | type[wire.RemoveOrder], phase: str, *, ask: int = 1
) -> Callable[[], object]:
    job = lost.job
    job.run()
    order = kind(
        root_id=lost.server.order.root_id,
        path=str(job.root),
        snapshot=f"models/{REPO}/{job.repo.sha}",
        repo_id=REPO,
        commit=job.repo.sha,
    )
    job.brake = Hand(job, phase, lost.lose, ask=ask)
    return lambda: steps.perform(
        wire.Job(id=uuid4(), attempt=1, lease_id=uuid4(), lease_seconds=60, order=order),
        tools=None,  # type: ignore[arg-type]  # neither kind works with any
        brake=job.brake,
        tally=job.tally,
        notes=job.notes,
        tell=lambda: None,
        still=lost.server.still,
    )


STEPS = {
    step.__name__: step
    for step in (
        *(planning, previewing, telling, fetching, looking_at_formats, publishing),
        *(rereading, verifying, about_to_remove, removing),
    )
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("step", STEPS)
def test_a_root_that_is_lost_ends_the_job_with_these_words(hub: Hub, tmp_path: Path, step: str, change: str) -> None:
    with approved(tmp_path) as server:
        lost = Lost(Ordered(hub, server.root, hub.repo(REPO, FILES), still=server.still), server, CHANGES[change])
        lost.ends(STEPS[step](lost))


@pytest.mark.parametrize("step", STEPS)
def test_a_root_that_stays_as_it_is_lets_the_job_end_well(hub: Hub, tmp_path: Path, step: str) -> None:
    with approved(tmp_path) as server:
        kept = Lost(Ordered(hub, server.root, hub.repo(REPO, FILES), still=server.still), server, lambda _: None)
        result = STEPS[step](kept)()
        assert isinstance(result, wire.Result)
        assert (result.outcome, kept.lost.is_set()) == ("succeeded", True)


def test_a_snapshot_is_not_removed_where_a_copy_of_the_root_took_its_place(hub: Hub, tmp_path: Path) -> None:
    with approved(tmp_path) as server:
        lost = Lost(
            Ordered(hub, server.root, hub.repo(REPO, FILES), still=server.still), server, grounds.swap_for_a_copy
        )
        lost.ends(about_to_remove(lost))
        assert (lost.job.published / BIG).exists()


@pytest.mark.parametrize("refused", [errno.EIO, errno.ENOSPC, errno.ESTALE], ids=errno.errorcode.get)
@pytest.mark.parametrize("lost", [True, False], ids=["a-lost-root", "the-root-as-it-was"])
def test_what_a_disk_refuses_is_told_of_the_disk_only_where_the_root_is_still_there(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool, refused: int
) -> None:
    with approved(tmp_path) as server:

        def refuse(*_: object) -> int:
            if lost and (server.root / MARKER).exists():
                grounds.remove_the_marker(server)
            raise OSError(refused, os.strerror(refused))

        monkeypatch.setattr(os, "pwrite", refuse)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, hub.repo(REPO, {BIG: FILES[BIG]}), still=server.still).run()
        on_the_disk = "insufficient_capacity" if refused == errno.ENOSPC else "storage_error"
        assert failed.value.code == ("root_unverified" if lost else on_the_disk)


def test_what_took_the_roots_place_while_a_snapshot_is_flushed_keeps_it_from_being_seen(
    hub: Hub, tmp_path: Path
) -> None:
    with approved(tmp_path) as server:
        job = Ordered(hub, server.root, hub.repo(REPO, FILES), still=server.still)
        lost = Lost(job, server, grounds.swap_for_an_empty_folder)
        lost.ends(publishing(lost))
        assert not (tmp_path / "the true one/models").exists()


def test_a_lease_that_ends_while_a_snapshot_is_flushed_publishes_nothing(hub: Hub, tmp_path: Path) -> None:
    with approved(tmp_path) as server:
        job = Ordered(hub, server.root, hub.repo(REPO, FILES), still=server.still)
        job.brake = Hand(job, "publish", lambda: job.brake.pull("lease_lost"))
        with pytest.raises(Stopped):
            job.run()
        assert not job.published.exists()
        job.brake = Brake()
        assert job.run().outcome == "succeeded"
        assert (job.published / BIG).exists()
