"""The control plane's own parts go away and come back: what it says stays right, and it heals without a restart."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from agent import protocol, wire
from tests.parts.control_plane import POSTGRES, ControlPlane
from tests.parts.ports import until
from tests.parts.postgres import Postgres

pytestmark = [
    pytest.mark.walk,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not POSTGRES, reason="there is neither a broker nor a database server to stop"),
]


@pytest.fixture
def database() -> Iterator[Postgres]:
    """A PostgreSQL of its own, which may be stopped."""
    server = Postgres().start()
    yield server
    server.remove()


@pytest.fixture
def plane(tmp_path: Path, database: Postgres) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path, MODELFORGE_DATABASE_URL=database.create("modelforge"))
    try:
        done = plane.manage("migrate", "--verbosity=0", "--no-input")
        assert done.returncode == 0, done.stderr
        yield plane.start()
    finally:
        plane.remove()


class Node:
    """An agent's requests, one at a time."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self._boot, self._sequence = plane, uuid4(), 0
        wanted = wire.Enroll(node_id=uuid4(), boot_id=self._boot, hostname="server01", agent_version="0.1.0")
        answer = self._post(protocol.ENROLL, wire.encode(wanted), plane.invite(display_name="server01"))
        assert answer.status_code == 200, answer.text
        self.id, self._credential = answer.json()["node_id"], answer.json()["credential"]

    def beat(self) -> requests.Response:
        self._sequence += 1
        now = datetime.now(UTC)
        said = wire.Beat(boot_id=self._boot, sequence=self._sequence, sent_at=now, agent_version="0.1.0")
        return self._post(protocol.HEARTBEAT, wire.encode(said), self._credential)

    def _post(self, path: str, body: bytes, secret: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {secret}", protocol.VERSION_HEADER: str(protocol.VERSION)}
        return requests.post(self._plane.url + path, body, headers=headers, timeout=20)


def ready(plane: ControlPlane) -> tuple[int, dict[str, dict[str, object]]]:
    answer = requests.get(f"{plane.url}/readyz", timeout=20)
    return answer.status_code, answer.json()["checks"]


def seen(plane: ControlPlane, node: Node, liveness: str) -> Callable[[], bool]:
    return lambda: plane.node(node.id)["liveness"] == liveness


def test_without_the_broker_states_stay_right_and_sweeps_come_back_with_it(plane: ControlPlane) -> None:
    """Field case 81."""
    assert plane.broker is not None
    node = Node(plane)
    assert node.beat().status_code == 200
    plane.broker.stop()
    until(lambda: ready(plane)[0] == 503, "not ready")
    assert ready(plane)[1]["broker"]["ok"] is False
    assert node.beat().status_code == 200
    assert plane.node(node.id)["liveness"] == "online"
    until(seen(plane, node, "stale"), "stale, with nobody to sweep")
    until(seen(plane, node, "offline"), "offline, with nobody to sweep")
    plane.broker.start()
    until(lambda: ready(plane)[0] == 200, "sweeps run again", within=90)
    told = until(lambda: plane.events("node.offline", node=node.id), "the history tells it")
    assert isinstance(told, list)
    assert len(told) == 1


def test_a_database_that_restarts_costs_503_and_heals(plane: ControlPlane, database: Postgres) -> None:
    """Field case 82."""
    node = Node(plane)
    assert node.beat().status_code == 200
    database.stop()
    answers = [node.beat(), node.beat(), plane.call("GET", "/api/v1/hardware/nodes")]
    assert [answer.status_code for answer in answers] == [503] * 3
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    assert {answer.json()["code"] for answer in answers} == {"unavailable"}
    status, checks = ready(plane)
    assert status == 503
    assert checks["database"]["ok"] is False
    assert requests.get(f"{plane.url}/healthz", timeout=20).status_code == 200
    database.start()
    until(lambda: node.beat().status_code == 200, "beats are heard again")
    until(lambda: plane.call("GET", "/api/v1/hardware/nodes").status_code == 200, "readers are answered again")
    until(lambda: ready(plane)[0] == 200, "sweeps run again", within=90)
    assert "Internal Server Error" not in plane.log
