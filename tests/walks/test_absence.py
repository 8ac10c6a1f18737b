"""The control plane itself goes away, whole or in parts: nobody else is blamed for it, and nothing false is shown."""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks.journey import join, seen

Make = Callable[..., Agent]
TEN_MINUTES = timedelta(minutes=10)

pytestmark = pytest.mark.walk


def test_ten_minutes_without_a_control_plane_are_one_gap_and_no_nodes_fault(own_plane: ControlPlane, agent: Make) -> None:
    """Field case 33; the ten minutes pass by moving what was kept into the past."""
    servers = [join(own_plane, agent, name=f"server{number}") for number in (1, 2)]
    own_plane.stop()
    own_plane.put_back("nodes_heartbeat", ["last_heard_at", "stale_at", "offline_at"], TEN_MINUTES)
    own_plane.put_back("nodes_controlplane", ["swept_at"], TEN_MINUTES)
    own_plane.start()
    gaps = own_plane.events("control_plane.gap")
    for server in servers:
        heard = own_plane.node(server.node_id)["heartbeat"]["sequence"]
        until(lambda s=server, h=heard: own_plane.node(s.node_id)["heartbeat"]["sequence"] > h, "heard again", within=30)
        assert seen(own_plane, server, "online")
    assert len(gaps) == len(own_plane.events("control_plane.gap")) == 1
    assert gaps[0]["details"]["seconds"] == pytest.approx(600, abs=60)
    assert own_plane.events("node.offline") == []
    assert own_plane.events("node.returned") == []
    assert own_plane.manage("audit_verify").returncode == 0


def test_without_a_worker_rest_still_tells_the_truth_and_readyz_is_red(own_plane: ControlPlane, agent: Make) -> None:
    """Field case 81."""
    server = join(own_plane, agent)
    own_plane.kill_worker()
    server.kill()
    seen(own_plane, server, "stale")
    seen(own_plane, server, "offline")
    assert own_plane.events("node.stale", "node.offline") == [], "nobody swept"
    own_plane.put_back("nodes_controlplane", ["swept_at"], timedelta(seconds=30))
    answer = own_plane.call("GET", "/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["sweep"]["ok"] is False
    assert own_plane.call("GET", "/healthz").status_code == 200

    own_plane.worker.start()
    until(lambda: own_plane.call("GET", "/readyz").status_code == 200, "ready again", within=40)
    assert [e["type"] for e in own_plane.events("node.stale", "node.offline")] == ["node.stale", "node.offline"]


@pytest.mark.skipif(os.environ.get("MODELFORGE_TEST_DATABASE") == "sqlite", reason="the embedded pair has no broker")
def test_without_a_broker_rest_still_tells_the_truth_and_sweeps_come_back(own_plane: ControlPlane, agent: Make) -> None:
    """Field case 81."""
    server = join(own_plane, agent)
    assert own_plane.broker is not None
    own_plane.broker.stop()
    answer = own_plane.call("GET", "/readyz")
    assert (answer.status_code, answer.json()["checks"]["broker"]["ok"]) == (503, False)
    seen(own_plane, server, "online")
    own_plane.broker.start()
    before = own_plane.swept_at()
    until(lambda: own_plane.swept_at() > before, "a sweep after the broker's return", within=40)
    until(lambda: own_plane.call("GET", "/readyz").status_code == 200, "ready again", within=40)
