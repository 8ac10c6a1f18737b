"""A driver that hangs, dies and comes back under a running agent: beats go on, and nothing known is forgotten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import standin
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks.journey import join, told

Make = Callable[..., Agent]

pytestmark = pytest.mark.walk

QUICK = {"MODELFORGE_AGENT_FACTS_INTERVAL": "1", "MODELFORGE_AGENT_NVML_TIMEOUT": "0.5"}
HOUR = 3600


def driver(state: Path, **settings: object) -> dict[str, str]:
    """The environment of an agent on a server with two GPUs; ``state`` changes the driver while it runs."""
    library = {"LD_LIBRARY_PATH": str(standin.library())}
    return QUICK | library | standin.lines(devices=2, state_file=state, **settings)


def change(state: Path, **settings: object) -> None:
    """Change the driver under the agent."""
    fresh = state.with_suffix(".new")
    fresh.write_text("".join(f"{name}={value}\n" for name, value in standin.lines(**settings).items()))
    fresh.replace(state)


def runtime(plane: ControlPlane, server: Agent, state: str) -> dict[str, Any]:
    """Wait until the node's driver is told to be so; the node."""

    def look() -> dict[str, Any] | None:
        node = plane.node(server.node_id)
        return node if node["gpu_runtime"]["state"] == state else None

    found = until(look, f"the driver is {state}")
    assert isinstance(found, dict)
    return found


def test_a_driver_that_hangs_for_an_hour_delays_no_beat(plane: ControlPlane, agent: Make, tmp_path: Path) -> None:
    """Field case 36."""
    server = join(
        plane, agent, name="hanging driver", **driver(tmp_path / "driver", sleeps=f"nvmlInitWithFlags={HOUR}")
    )
    node = runtime(plane, server, "failed")
    first = node["heartbeat"]["sequence"]
    until(lambda: plane.node(server.node_id)["heartbeat"]["sequence"] >= first + 5, "five more beats")
    assert plane.events("node.stale", node=server.node_id) == []
    assert plane.node(server.node_id)["liveness"] == "online"


def test_a_driver_that_dies_keeps_its_gpus_and_comes_back(plane: ControlPlane, agent: Make, tmp_path: Path) -> None:
    """Field cases 47 and 49."""
    server = join(plane, agent, name="dying driver", **driver(tmp_path / "driver"))
    told(plane, server, "accelerator.found")
    before = runtime(plane, server, "ready")
    change(tmp_path / "driver", faults="*=999")
    failed = runtime(plane, server, "failed")
    assert failed["gpu_runtime"]["code"] == 999
    assert failed["liveness"] == "online"
    assert names(failed) == names(before)
    assert [gpu["missing_since"] for gpu in failed["accelerators"]] == [None, None]

    change(tmp_path / "driver")
    assert names(runtime(plane, server, "ready")) == names(before)
    changes = told(plane, server, "node.gpu_runtime_changed", count=2)
    assert [(e["details"]["old"], e["details"]["new"]) for e in changes] == [("ready", "failed"), ("failed", "ready")]
    assert plane.events("accelerator.missing", node=server.node_id) == []


def names(node: dict[str, Any]) -> list[str]:
    """The UUIDs of its GPUs."""
    return [gpu["uuid"] for gpu in node["accelerators"]]


def test_a_gpu_that_vanishes_under_a_driver_that_works_is_told(
    plane: ControlPlane, agent: Make, tmp_path: Path
) -> None:
    """Field case 46: the same server, and this time the driver is well."""
    server = join(plane, agent, name="vanishing gpu", **driver(tmp_path / "driver"))
    told(plane, server, "accelerator.found")
    change(tmp_path / "driver", devices=1)
    (missing,) = told(plane, server, "accelerator.missing")
    assert missing["details"]["index"] == 1
