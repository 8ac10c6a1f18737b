"""A node that tells too much is held back: heard all along, its job goes on, its claims wait, then go on again."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import requests

from agent import protocol, wire
from tests.canary.browser import Browser
from tests.hub import contents
from tests.hub.hub import Hub
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.journey import told

pytestmark = [pytest.mark.walk, pytest.mark.timeout(300)]
MIB = 1024 * 1024
MOST = 90  # changes an hour
PAID_OFF_IN = timedelta(hours=1) / MOST
PASSWORD = "a password of a walk"


@pytest.fixture(scope="module")
def strict_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose history takes little of one node."""
    made = ControlPlane(tmp_path_factory.mktemp("strict"), MODELFORGE_NODE_HISTORY_PER_HOUR=str(MOST))
    yield made.start()
    made.remove()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def tell_too_much(plane: ControlPlane, agent: Agent, root: dict[str, Any]) -> requests.Response:
    """A disk that is now this way and now that, told with the node's credential until it is refused; the refusal."""
    ((boot_id,),) = plane.sql("SELECT boot_id FROM nodes_heartbeat")
    faults: list[wire.RootFault] = ["marker_missing", "not_writable"]
    for number in range(2 * MOST):
        proof = wire.RootProof(root_id=UUID(root["id"]), fault=faults[number % 2], detail="as told by hand")
        answer = requests.post(
            plane.url + protocol.CLAIM,
            data=wire.encode(wire.Claim(boot_id=UUID(str(boot_id)), types=[], proofs=[proof])),
            headers={
                "Authorization": f"Bearer {agent.credential}",
                protocol.VERSION_HEADER: str(protocol.VERSION),
                "Content-Type": "application/json",
            },
            timeout=20,
        )
        if answer.status_code != 200:
            return answer
    raise AssertionError("nobody held it back")


def refused(plane: ControlPlane) -> int:
    """How many claims were answered with 429, as the log tells."""
    lines = [json.loads(line) for line in plane.log.splitlines() if '"status": 429' in line]
    return len([line for line in lines if line["path"] == protocol.CLAIM])


def warned(plane: ControlPlane, agent: Agent) -> bool:
    """Whether REST says that the node is held back."""
    return "held_back" in [warning["code"] for warning in plane.node(agent.node_id)["warnings"]]


def page(plane: ControlPlane, agent: Agent) -> str:
    """The node's page, as an operator reads it."""
    plane.manage("create_operator", "walker", "--password-file", "-", stdin=PASSWORD)
    browser = Browser(plane.url, lambda _, answer: answer)
    assert browser.log_in("walker", PASSWORD).status_code == 302
    shown = browser.get(f"/admin/nodes/node/{agent.node_id}/change/")
    assert shown.status_code == 200
    return shown.text


def heard_more(plane: ControlPlane, agent: Agent, beats: int) -> None:
    """Wait for so many beats more; the node is online all along."""

    def heard() -> int:
        node = plane.node(agent.node_id)
        assert node["liveness"] == "online"
        return int(node["heartbeat"]["sequence"])

    before = heard()
    until(lambda: heard() >= before + beats, f"{beats} beats; {agent.log[-1500:]}")


def test_a_node_that_is_held_back_is_heard_works_on_and_goes_on_by_itself(
    strict_plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    plane = strict_plane
    first = hub.repo("org/first", contents.model(24 * MIB, shards=4, seed=1))
    second = hub.repo("org/second", contents.model(MIB, seed=2))
    hub.cdn.bytes_per_second = MIB // 32  # so slow that it runs until it is let run
    one, root = acquiring.server(plane, agent, hub)
    beside = acquiring.root(plane, one, "beside")
    running = acquiring.order(plane, root, first)
    acquiring.pinned(plane, running, one)

    no, held_at = tell_too_much(plane, one, beside), time.monotonic()
    waiting = acquiring.order(plane, root, second)
    until(lambda: "jobs could not be asked for" in one.log, f"the agent asked for work; {one.log[-1500:]}")
    assert (no.status_code, no.json()["code"]) == (429, "throttled")
    assert timedelta() < timedelta(seconds=int(no.headers["Retry-After"])) <= PAID_OFF_IN + timedelta(seconds=1)
    assert warned(plane, one)
    assert "Held back: it tells too much" in page(plane, one)

    done = acquiring.job(plane, running)["progress"]["bytes_done"]
    until(lambda: acquiring.job(plane, running)["progress"]["bytes_done"] > done, f"progress; {one.log[-1500:]}")
    heard_more(plane, one, 5)
    hub.cdn.bytes_per_second = None
    acquiring.ended(plane, running, one, within=90)
    acquiring.assert_published(one, first, first.sha)
    assert warned(plane, one), "its result was heard meanwhile"

    acquiring.ended(plane, waiting, one, within=120)
    acquiring.assert_published(one, second, second.sha)
    acquiring.root_in(plane, beside, "verified", one)
    spell = timedelta(seconds=time.monotonic() - held_at)
    assert refused(plane) <= 3 + spell / PAID_OFF_IN, "one that is told to wait does not ask again before"
    assert plane.events("node.stale", "node.offline", "node.identity_conflict", node=one.node_id) == []

    plane.put_back("nodes_node", ["history_owed_until"], timedelta(hours=2))
    prune = "from modelforge.tasks import prune; prune()"  # as the schedule does each half hour
    assert plane.manage("shell", "-c", prune).returncode == 0
    assert told(plane, one, "node.let_go")
    assert not warned(plane, one)
    assert "Held back: it tells too much" not in page(plane, one)
    assert plane.manage("audit_verify").returncode == 0
