"""The agent is killed twenty times, in every phase of an acquisition; the snapshot comes all the same."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.hub import contents
from tests.hub.contents import Content
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.hub.repositories import Repository
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.acquiring import Row

pytestmark = [pytest.mark.walk, pytest.mark.timeout(180)]
MIB = 1024 * 1024
KILLS = 5  # of each phase
SHARDS = 3
SMALL = 500  # files, so that reading and flushing them takes a while


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def files(seed: int) -> dict[str, bytes | str | Content]:
    """Large files and many small ones: both ways of fetching, and something to flush when it is published."""
    small: dict[str, bytes | str | Content] = {f"small/{n:03}.json": b"[%d, %d]" % (seed, n) for n in range(SMALL)}
    return contents.model(24 * MIB, shards=SHARDS, seed=seed) | small


@dataclass
class Life:
    """One agent that is killed again and again, and the job that it is at."""

    plane: ControlPlane
    hub: Hub
    agent: Agent
    root: Row
    dice: random.Random
    repo: Repository = field(init=False)
    job: Row = field(init=False)
    lived: Counter[str] = field(default_factory=Counter)  # where the kills hit
    killed_at: list[float] = field(default_factory=list)
    started_ns: int = 0
    asked: int = 0

    def order(self, number: int) -> None:
        """The next snapshot."""
        self.repo = self.hub.repo(f"org/model-{number}", files(seed=number))
        self.job = acquiring.order(self.plane, self.root, self.repo)

    def begin(self) -> None:
        """The next life."""
        self.started_ns, self.asked = time.time_ns(), len(self.hub.of("info"))
        self.agent.start()

    def end(self) -> None:
        """As a power cut ends it."""
        self.agent.kill()
        self.killed_at.append(time.monotonic())
        hit = "published" if self.published.exists() else "fetched" if self._whole() else "fetching"
        self.lived[hit] += 1

    @property
    def published(self) -> Path:
        """Where the snapshot lies in the end."""
        return acquiring.folder(self.agent) / "models" / self.repo.id / self.repo.sha

    @property
    def partial(self) -> Path:
        """Where verified files wait."""
        return acquiring.folder(self.agent) / ".partial" / str(self.job["id"]) / "snapshot"

    def at_work(self) -> None:
        """Wait until this life has taken up the job: the Hub is asked anew each time."""
        until(lambda: len(self.hub.of("info")) > self.asked, f"the Hub is asked; {self.agent.log[-1500:]}", every=0.01)

    def all_here(self) -> None:
        """Wait until every file was fetched."""
        until(lambda: self._whole() or self.published.exists(), "all files are here", every=0.002)

    def manifest_written(self) -> None:
        """Wait until this life is publishing."""

        def begun() -> bool:
            try:
                return (self.partial / "manifest.json").stat().st_mtime_ns > self.started_ns
            except FileNotFoundError:
                return self.published.exists()

        until(begun, f"publishing has begun; {self.agent.log[-1500:]}", every=0.001)

    def wait_a_little(self, most_seconds: float) -> None:
        """The moment of the kill is any."""
        time.sleep(self.dice.uniform(0, most_seconds))

    def _whole(self) -> bool:
        try:
            return (
                len(os.listdir(self.partial / "small")) == SMALL and len(list(self.partial.glob("*.safetensors"))) == 3
            )
        except FileNotFoundError:
            return False


def in_plan(life: Life) -> None:
    """While the Hub is asked what there is."""
    life.wait_a_little(0.5)


def in_fetch(life: Life) -> None:
    """While bytes come in, a little further each time."""
    acquiring.arrived(life.hub, life.hub.sent() + life.dice.randrange(1, 6 * MIB))


def in_verify(life: Life) -> None:
    """When the last file is here, or while what an earlier life left is read again."""
    life.all_here()
    life.wait_a_little(0.15)


def in_publish(life: Life) -> None:
    """When the manifest is written: before or after the rename, before or after that is told."""
    life.manifest_written()
    life.wait_a_little(life.dice.choice([0, 0.01, 0.06]))


PHASES: dict[str, Callable[[Life], None]] = {
    "plan": in_plan,
    "fetch": in_fetch,
    "verify": in_verify,
    "publish": in_publish,
}
HITS = {
    "plan": {"fetching"},
    "fetch": {"fetching"},
    "verify": {"fetched", "published"},
    "publish": {"fetched", "published"},
}
"""What may lie on the disk after a kill in that phase."""


@pytest.mark.parametrize("phase", PHASES)
def test_killed_five_times_in_one_phase_the_snapshot_is_published_with_the_right_bytes(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub, phase: str
) -> None:
    one, root = acquiring.server(plane, agent, hub)
    life = Life(plane, hub, one, root, random.Random(f"seed of {phase}"))
    if phase == "plan":
        hub.fault("info", Fault(wait=0.5), times=KILLS)
    if phase == "fetch":
        hub.cdn.bytes_per_second = 2 * MIB
    life.order(1)
    life.asked = 0
    ordered = 1
    for _ in range(KILLS):
        if acquiring.job(plane, life.job)["finished_at"] is not None:  # the last kill came too late for it
            check(life)
            ordered += 1
            life.order(ordered)
        life.at_work()
        PHASES[phase](life)
        life.end()
        life.begin()
    hub.cdn.bytes_per_second = None
    check(life)
    assert [again for at in life.killed_at for again in acquiring.asked_again(hub, at)] == []
    assert life.lived.total() == KILLS
    assert set(life.lived) <= HITS[phase], life.lived


def check(life: Life) -> None:
    """Published once, and right."""
    done = acquiring.ended(life.plane, life.job, life.agent)
    assert done["commit"] == life.repo.sha
    acquiring.assert_published(life.agent, life.repo, life.repo.sha)
    found = acquiring.artifacts(life.plane, life.agent, repo_id=life.repo.id)
    assert [(row["commit"], row["state"]) for row in found] == [(life.repo.sha, "published")]


def test_killed_while_it_removes_a_snapshot_nothing_of_it_is_left_in_the_end(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    one, root = acquiring.server(plane, agent, hub)
    life = Life(plane, hub, one, root, random.Random("removing"))
    life.order(1)
    check(life)
    (artifact,) = acquiring.artifacts(plane, one)
    job = plane.post(f"/api/v1/admin/artifacts/{artifact['id']}/remove", reason="room")
    until(lambda: not life.published.exists(), f"it is unpublished; {one.log[-1500:]}", every=0.001)
    one.kill()
    one.start()
    acquiring.ended(plane, job, one)
    left = [path for path in acquiring.folder(one).rglob("*.safetensors") if path.is_file()]
    assert left == []
    assert acquiring.artifacts(plane, one) == []
    again = acquiring.order(plane, root, life.repo)
    acquiring.ended(plane, again, one)
    acquiring.assert_published(one, life.repo, life.repo.sha)
