"""An operator needs the room of what a cancelled job left: it is gone from the disk before anybody is told so."""

from collections.abc import Callable, Iterator
from typing import Any

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


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def half_done(plane: ControlPlane, job: dict[str, Any], agent: Agent, name: str) -> Any:
    """Wait until this is known of what the job left; it."""
    return until(
        lambda: (acquiring.job(plane, job)["half_done"] or {}).get(name), f"{name} is told; {agent.log[-1500:]}"
    )


def test_half_done_files_are_deleted_at_an_operators_word_and_a_retry_begins_anew(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(24 * MIB, shards=4, seed=1))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = MIB
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 12 * MIB)
    plane.post(f"/api/v1/admin/jobs/{job['id']}/cancel", reason="not now")
    acquiring.ended(plane, job, one, "cancelled")
    lying = acquiring.folder(one) / ".partial" / str(job["id"])
    weighed = half_done(plane, job, one, "bytes")
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
