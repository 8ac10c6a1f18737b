"""An operator needs the room of what a cancelled job left: it is gone from the disk before anybody is told so."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import contents
from tests.hub.hub import Hub
from tests.parts import disks
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.journey import told

pytestmark = [pytest.mark.walk, pytest.mark.timeout(180)]
MIB = 1024 * 1024


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def half_done(plane: ControlPlane, job: dict[str, Any], agent: Agent, name: str) -> Any:
    """Wait until this is known of what the job left; it."""
    return until(
        lambda: (acquiring.job(plane, job)["half_done"] or {}).get(name), f"{name} is told; {agent.log[-1500:]}"
    )


def cancelled(plane: ControlPlane, agent: Callable[..., Agent], hub: Hub) -> tuple[Agent, dict[str, Any], int]:
    """A server where a job was cancelled in the middle; the job, and what its half-done files take."""
    repo = hub.repo("org/model", contents.model(24 * MIB, shards=4, seed=1))
    hub.cdn.bytes_per_second = MIB
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 12 * MIB)
    plane.post(f"/api/v1/admin/jobs/{job['id']}/cancel", reason="not now")
    acquiring.ended(plane, job, one, "cancelled")
    return one, job, half_done(plane, job, one, "bytes")


def broken_off(plane: ControlPlane, agent: Agent, job: dict[str, Any]) -> Path:
    """The agent is killed, the job's files shall go, and this is as far as their deletion had come."""
    agent.kill()
    plane.post(f"/api/v1/admin/jobs/{job['id']}/forget", reason="the disk is full")
    root = acquiring.folder(agent)
    aside = root / ".removed" / f"{job['id']}.partial"
    aside.parent.mkdir(exist_ok=True)
    return (root / ".partial" / str(job["id"])).rename(aside)


def test_a_deletion_that_an_agents_end_broke_off_is_finished_before_anybody_is_told_so(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    one, job, weighed = cancelled(plane, agent, hub)
    aside = broken_off(plane, one, job)
    one.start()
    half_done(plane, job, one, "gone_at")
    assert not aside.exists()
    wanted, gone = told(plane, one, "job.forget_requested", "job.forgotten", count=2)
    assert [e["details"]["freed_bytes"] for e in (wanted, gone) if e["type"] == "job.forgotten"] == [weighed]


def test_as_long_as_something_of_them_cannot_be_deleted_nobody_is_told_that_they_are_gone(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    one, job, _ = cancelled(plane, agent, hub)
    aside = broken_off(plane, one, job)
    with disks.memory(aside / "held", MIB):
        one.start()
        repo = hub.repo("org/other", contents.model(MIB, shards=1, seed=2))
        root_id = acquiring.job(plane, job)["root_id"]
        acquiring.ended(plane, acquiring.order(plane, {"id": root_id}, repo), one)
        assert "cannot be tidied" in one.log
        assert acquiring.job(plane, job)["half_done"]["gone_at"] is None
        one.stop()
    one.start()  # its first look is at once
    half_done(plane, job, one, "gone_at")
    assert not aside.exists()


def test_half_done_files_are_deleted_at_an_operators_word_and_a_retry_begins_anew(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    one, job, weighed = cancelled(plane, agent, hub)
    repo = hub.repositories["org/model"]
    size = sum(file.size for file in repo.files().values())
    lying = acquiring.folder(one) / ".partial" / str(job["id"])
    assert 8 * MIB <= weighed < size + MIB
    assert lying.exists()
    plane.post(f"/api/v1/admin/jobs/{job['id']}/forget", reason="the disk is full")
    half_done(plane, job, one, "gone_at")
    assert not lying.exists()
    wanted, gone = told(plane, one, "job.forget_requested", "job.forgotten", count=2)
    assert {event["type"] for event in (wanted, gone)} == {"job.forget_requested", "job.forgotten"}
    (freed,) = [event["details"]["freed_bytes"] for event in (wanted, gone) if event["type"] == "job.forgotten"]
    assert freed == weighed
    hub.cdn.bytes_per_second = None
    before = hub.sent()
    plane.post(f"/api/v1/admin/jobs/{job['id']}/retry", reason="now")
    acquiring.ended(plane, job, one)
    acquiring.assert_published(one, repo, repo.sha)
    assert hub.sent() - before >= size, "every byte came again"
    assert acquiring.job(plane, job)["half_done"] is None
