"""The steps that several walks share: a server joins and is seen, and what is then waited for."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until

Make = Callable[..., Agent]


def join(plane: ControlPlane, make: Make, *, url: str = "", name: str = "server01", **variables: str) -> Agent:
    """A server that was invited, started and is online with its facts told."""
    token = plane.invite(display_name=name)
    agent = make(url or plane.url, MODELFORGE_AGENT_ENROLLMENT_TOKEN=token, **variables).start()
    seen(plane, agent, "online")
    until(lambda: plane.node(agent.node_id)["facts"], f"{name} told its facts")
    return agent


def seen(plane: ControlPlane, agent: Agent, liveness: str, *, within: float = 60) -> dict[str, Any]:
    """Wait until REST tells this liveness of the agent's node; the node."""

    def look() -> dict[str, Any] | None:
        if not agent.node_id:
            return None
        answer = plane.call("GET", f"/api/v1/hardware/nodes/{agent.node_id}")
        node: dict[str, Any] = answer.json()
        return node if answer.ok and node["liveness"] == liveness else None

    found = until(look, f"{liveness} in REST; the agent said: {agent.log[-1500:]}", within=within)
    assert isinstance(found, dict)
    return found


def told(plane: ControlPlane, agent: Agent, *types: str, count: int = 1, within: float = 60) -> list[dict[str, Any]]:
    """Wait until the history holds so many events of these types about the agent's node; the events."""
    what = f"{count} of {', '.join(types)}"
    until(lambda: len(plane.events(*types, node=agent.node_id)) >= count, what, within=within)
    return plane.events(*types, node=agent.node_id)


def parked(agent: Agent, code: str, *, within: float = 60) -> str:
    """Wait until the agent's health check fails for this reason; what it says."""

    def look() -> str | None:
        exit_code, line = agent.health()
        return line if exit_code == 1 and line.startswith(f"parked ({code})") else None

    return str(until(look, f"parked for {code}", within=within, every=0.3))


def sweep_after(plane: ControlPlane, moment: datetime) -> None:
    """Wait until a sweep has run after this instant."""
    until(lambda: plane.swept_at() > moment, f"a sweep after {moment}")
