"""While a model arrives, the control plane goes away, two agents share one identity, or the branch moves."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub import contents
from tests.hub.hub import Hub
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.journey import told

pytestmark = [pytest.mark.walk, pytest.mark.timeout(180)]
MIB = 1024 * 1024
LEASE_SECONDS = 8


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


@pytest.fixture(scope="module")
def brief_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that gives short leases, and is stopped and started."""
    folder = tmp_path_factory.mktemp("brief")
    made = ControlPlane(folder, MODELFORGE_JOB_LEASE_SECONDS=str(LEASE_SECONDS), MODELFORGE_GAP_SECONDS="600")
    yield made.start()
    made.remove()


def test_a_download_that_ends_while_the_control_plane_is_away_is_told_once_it_is_back(
    frail_plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    plane = frail_plane
    repo = hub.repo("org/model", contents.model(16 * MIB, seed=1))
    hub.cdn.bytes_per_second = 256 * 1024
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 1)
    plane.stop()
    hub.cdn.bytes_per_second = None
    place = acquiring.folder(one) / "models/org/model" / repo.sha
    until(place.exists, f"published without a control plane; {one.log[-2000:]}")
    acquiring.assert_published(one, repo, repo.sha)
    plane.start()
    done = acquiring.ended(plane, job, one)
    assert (done["attempt"], done["spent"]) == (1, 0)
    assert [artifact["commit"] for artifact in acquiring.artifacts(plane, one)] == [repo.sha]
    assert len(told(plane, one, "job.succeeded")) == len(told(plane, one, "artifact.published")) == 1
    assert len(hub.of("cdn")) == len({(r.file, r.range) for r in hub.of("cdn")})


def test_an_agent_whose_lease_ends_stops_cleanly_and_goes_on_when_it_is_given_another(
    brief_plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    plane = brief_plane
    repo = hub.repo("org/model", contents.model(40 * MIB, seed=2))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = 256 * 1024
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 1)
    plane.stop()
    stopped_at = time.monotonic()
    until(
        lambda: [r for r in hub.of("cdn") if r.ended_at and not r.whole],
        "the agent hangs up",
        within=LEASE_SECONDS + 10,
    )
    assert time.monotonic() - stopped_at <= LEASE_SECONDS + 5
    asked = len(hub.of("cdn"))
    sent = hub.sent()
    assert one.running
    assert sent < size // 2
    hub.cdn.bytes_per_second = None
    assert not (acquiring.folder(one) / "models").exists()
    assert len(hub.of("cdn")) == asked
    plane.start()
    acquiring.ended(plane, job, one)
    acquiring.assert_published(one, repo, repo.sha)
    assert [artifact["commit"] for artifact in acquiring.artifacts(plane, one)] == [repo.sha]
    assert hub.sent() - size < 4 * MIB  # what was on its way when the lease ended


def test_a_branch_that_moves_between_two_lives_changes_nothing(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    """Field case 67."""
    repo = hub.repo("org/model", contents.model(8 * MIB, seed=3))
    first = repo.sha
    hub.cdn.bytes_per_second = MIB
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    assert acquiring.pinned(plane, job, one) == first
    acquiring.arrived(hub, 2 * MIB)
    one.kill()
    second = repo.commit(contents.model(8 * MIB, seed=4))
    hub.cdn.bytes_per_second = None
    one.start()
    assert acquiring.ended(plane, job, one)["commit"] == first
    acquiring.assert_published(one, repo, first)
    later = acquiring.order(plane, root, repo)
    assert acquiring.ended(plane, later, one)["commit"] == second
    acquiring.assert_published(one, repo, second)
    assert {artifact["commit"] for artifact in acquiring.artifacts(plane, one)} == {first, second}


def test_two_orders_of_one_snapshot_are_one_artifact_and_its_bytes_come_once(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(4 * MIB, seed=5))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = 2 * MIB
    one, root = acquiring.server(plane, agent, hub)
    by_branch = acquiring.order(plane, root, repo)
    again = acquiring.order(plane, root, repo)
    by_commit = acquiring.order(plane, root, repo, revision=repo.sha)
    assert (again["id"], again["joined"]) == (by_branch["id"], True)
    assert by_commit["id"] != by_branch["id"]
    acquiring.ended(plane, by_branch, one)
    acquiring.ended(plane, by_commit, one)
    acquiring.assert_published(one, repo, repo.sha)
    assert [artifact["commit"] for artifact in acquiring.artifacts(plane, one)] == [repo.sha]
    assert hub.sent() == size


def test_two_agents_with_one_identity_publish_one_artifact_the_right_one(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    """A restored copy of a server starts beside the first, on the same disk, in the middle of a download."""
    repo = hub.repo("org/model", contents.model(24 * MIB, seed=6))
    hub.cdn.bytes_per_second = MIB // 2
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 2 * MIB)
    other = copy_of(one, agent)
    told(plane, one, "node.identity_conflict")
    until(lambda: '"outcome": "lease_lost"' in one.log, f"the first lets go of the job; {one.log[-1500:]}")
    assert not (acquiring.folder(one) / "models").exists()
    hub.cdn.bytes_per_second = None
    acquiring.ended(plane, job, other, within=90)
    acquiring.assert_published(one, repo, repo.sha)
    assert [artifact["commit"] for artifact in acquiring.artifacts(plane, one)] == [repo.sha]
    assert len(told(plane, one, "artifact.published")) == 1


def test_an_agent_that_was_frozen_past_its_lease_writes_nothing_more_under_it_and_goes_on_under_the_next(
    brief_plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    """A virtual machine that was paused, with the control plane up: the attempt is spent, the bytes are not."""
    plane = brief_plane
    repo = hub.repo("org/frozen", contents.model(24 * MIB, seed=7))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = MIB
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 2 * MIB)
    os.kill(one.pid, signal.SIGSTOP)
    until(lambda: acquiring.job(plane, job)["state"] == "queued", "the lease is over")
    hub.cdn.bytes_per_second = None
    os.kill(one.pid, signal.SIGCONT)
    done = acquiring.ended(plane, job, one)
    assert (done["attempt"], done["spent"]) == (2, 1)
    acquiring.assert_published(one, repo, repo.sha)
    assert [artifact["commit"] for artifact in acquiring.artifacts(plane, one)] == [repo.sha]
    assert len(told(plane, one, "job.succeeded")) == 1
    assert hub.sent() < 2 * size


def copy_of(one: Agent, make: Callable[..., Agent]) -> Agent:
    """Another agent with the same identity and the same artifact volume."""
    other = make(one.environment["MODELFORGE_AGENT_CONTROL_PLANE_URL"])
    for name in ("HF_ENDPOINT", "MODELFORGE_AGENT_ARTIFACT_DIR"):
        other.environment[name] = one.environment[name]
    shutil.copytree(one.folder / "state", other.folder / "state", dirs_exist_ok=True)
    lock: Path
    for lock in (other.folder / "state").glob("*.lock"):
        lock.unlink()
    return other.start()
