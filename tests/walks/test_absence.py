"""The control plane itself goes away, whole or in parts: nobody else is blamed for it, and nothing false is shown."""

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


def test_ten_minutes_without_a_control_plane_are_one_gap_and_no_nodes_fault(
    frail_plane: ControlPlane, agent: Make
) -> None:
    """Field case 33; the ten minutes pass by moving what was kept into the past."""
    servers = [join(frail_plane, agent, name=f"server{number}") for number in (1, 2)]
    frail_plane.stop()
    frail_plane.put_back("nodes_heartbeat", ["last_heard_at", "stale_at", "offline_at"], TEN_MINUTES)
    frail_plane.put_back("nodes_controlplane", ["swept_at"], TEN_MINUTES)
    frail_plane.start()
    for server in servers:
        heard_again(frail_plane, server)
        assert seen(frail_plane, server, "online")
        assert frail_plane.events("node.offline", node=server.node_id) == []
    (gap,) = frail_plane.events("control_plane.gap")
    assert gap["details"]["seconds"] == pytest.approx(600, abs=60)
    assert frail_plane.manage("audit_verify").returncode == 0


def heard_again(plane: ControlPlane, server: Agent) -> None:
    """Wait for one more beat."""
    before = plane.node(server.node_id)["heartbeat"]["sequence"]
    until(lambda: plane.node(server.node_id)["heartbeat"]["sequence"] > before, "one more beat")


def test_without_a_worker_rest_still_tells_the_truth_and_readyz_is_red(frail_plane: ControlPlane, agent: Make) -> None:
    """Field case 81."""
    server = join(frail_plane, agent)
    frail_plane.kill_worker()
    server.kill()
    seen(frail_plane, server, "stale")
    seen(frail_plane, server, "offline")
    assert frail_plane.events("node.stale", "node.offline", node=server.node_id) == [], "nobody swept"
    frail_plane.put_back("nodes_controlplane", ["swept_at"], timedelta(seconds=30))
    answer = frail_plane.call("GET", "/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["sweep"]["ok"] is False
    assert frail_plane.call("GET", "/healthz").status_code == 200

    frail_plane.worker.start()
    until(lambda: frail_plane.call("GET", "/readyz").status_code == 200, "ready again")
    told_late = frail_plane.events("node.stale", "node.offline", node=server.node_id)
    assert [event["type"] for event in told_late] == ["node.stale", "node.offline"]
