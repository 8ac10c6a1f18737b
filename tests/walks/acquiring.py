"""The steps that the walks about models share: a root is registered, a snapshot ordered, and what becomes of it."""

import json
from pathlib import Path
from typing import Any

from tests.hub import contents
from tests.hub.faults import Request
from tests.hub.hub import Hub
from tests.hub.repositories import Repository
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks.journey import Make, join

Row = dict[str, Any]
NAME = "model-registry"
SEGMENT_BYTES = 16 * 1024 * 1024  # what a crash may cost each connection
CONNECTIONS = 8


def server(plane: ControlPlane, make: Make, hub: Hub, **variables: str) -> tuple[Agent, Row]:
    """A server that joined, takes its models from this Hub, and has one proven root."""
    agent = join(plane, make, HF_ENDPOINT=hub.url, **variables)
    return agent, root(plane, agent)


def folder(agent: Agent, name: str = NAME) -> Path:
    """A root as the agent sees it."""
    return agent.folder / "artifacts" / name


def root(plane: ControlPlane, agent: Agent, name: str = NAME, **said: Any) -> Row:
    """Register a root and wait until its agent has proven it."""
    made = plane.post(
        "/api/v1/admin/storage-roots",
        node_id=agent.node_id,
        host_path=f"/mnt/cache/appdata/modelforge/artifacts/{name}",
        container_path=str(folder(agent, name)),
        **{"reserve_bytes": 0, **said},
    )
    return root_in(plane, made, "verified", agent)


def root_in(plane: ControlPlane, root: Row, state: str, agent: Agent) -> Row:
    """Wait until the root is in that state."""

    def look() -> Row | None:
        found: Row = plane.get(f"/api/v1/admin/storage-roots/{root['id']}")
        return found if found["state"] == state else None

    found = until(look, f"the root is {state}; the agent said: {agent.log[-1500:]}")
    assert isinstance(found, dict)
    return found


def order(plane: ControlPlane, root: Row, repo: Repository, **said: Any) -> Row:
    """Order a repository's snapshot into the root."""
    made: Row = plane.post("/api/v1/admin/jobs", root_id=root["id"], repo_id=repo.id, **said)
    return made


def job(plane: ControlPlane, job: Row) -> Row:
    """A job as REST tells it."""
    found: Row = plane.get(f"/api/v1/admin/jobs/{job['id']}")
    return found


def ended(plane: ControlPlane, ordered: Row, agent: Agent, state: str = "succeeded", *, within: float = 60) -> Row:
    """Wait until the job has ended like this."""

    def look() -> Row | None:
        found = job(plane, ordered)
        if found["finished_at"] is not None:
            assert found["state"] == state, (found, agent.log[-3000:])
            return found
        return None

    found = until(look, f"the job {state}; the agent said: {agent.log[-3000:]}", within=within)
    assert isinstance(found, dict)
    return found


def pinned(plane: ControlPlane, ordered: Row, agent: Agent) -> str:
    """Wait until the commit is known; it."""
    found = until(lambda: job(plane, ordered)["commit"], f"a commit; {agent.log[-2000:]}")
    return str(found)


def arrived(hub: Hub, count: int, *, within: float = 60) -> None:
    """Wait until so many bytes of files have left the Hub."""
    until(lambda: hub.sent() >= count, f"{count} bytes sent, not {hub.sent()}", within=within, every=0.005)


def arrived_for_good(hub: Hub, killed_at: float) -> list[Request]:
    """What had been answered in full before the agent was killed; what was answered just then may be lost."""
    answered = [r for r in hub.of("cdn", "resolve") if r.whole and r.status in (200, 206)]
    return [r for r in answered if r.ended_at is not None and r.ended_at < killed_at - 0.3]


def asked_again(hub: Hub, killed_at: float) -> list[Request]:
    """Requests after the kill for bytes that had arrived for good before."""
    had = arrived_for_good(hub, killed_at)
    later = [r for r in hub.of("cdn", "resolve") if r.at > killed_at and r.status in (200, 206)]
    return [r for r in later if any(_overlap(r, old) for old in had)]


def _overlap(one: Request, other: Request) -> bool:
    if one.path.split("?")[0] != other.path.split("?")[0]:
        return False
    if one.range is None or other.range is None:
        return True
    (start, end), (begin, last) = one.range, other.range
    return (last is None or start <= last) and (end is None or begin <= end)


def artifacts(plane: ControlPlane, agent: Agent, **query: str) -> list[Row]:
    """The artifacts of the agent's node."""
    wanted = "".join(f"&{name}={text}" for name, text in query.items())
    found: list[Row] = plane.get(f"/api/v1/artifacts?node={agent.node_id}{wanted}")["results"]
    return found


def assert_published(agent: Agent, repo: Repository, commit: str, name: str = NAME) -> Path:
    """The snapshot lies under its commit with exactly the right bytes, and nothing half done beside it."""
    place = folder(agent, name) / "models" / repo.id / commit
    files = {path: contents.sha256(file.content) for path, file in repo.files(commit).items()}
    found = {
        str(path.relative_to(place)): contents.sha256(contents.OnDisk(path))
        for path in place.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == files
    assert json.loads((place / "manifest.json").read_text())["commit"] == commit
    return place
