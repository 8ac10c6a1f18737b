"""A control plane for all walks that leave it running, one of its own for those that do not, and agents and proxies."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.proxy import Proxy


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that runs through all walks; each walk brings its own nodes."""
    made = ControlPlane(tmp_path_factory.mktemp("plane"))
    yield made.start()
    made.remove()


@pytest.fixture(scope="module")
def frail_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for walks that stop it, in whole or in part, and start it again."""
    made = ControlPlane(tmp_path_factory.mktemp("frail"))
    yield made.start()
    made.remove()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Makes agents, each with a folder of its own."""
    made: list[Agent] = []

    def make(url: str, **variables: str) -> Agent:
        made.append(Agent(tmp_path / f"agent-{len(made) + 1}", url, **variables))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def proxy() -> Iterator[Callable[[ControlPlane], Proxy]]:
    """Makes proxies before a control plane."""
    made: list[Proxy] = []

    def make(plane: ControlPlane) -> Proxy:
        made.append(Proxy(plane.port))
        return made[-1]

    yield make
    for one in made:
        one.close()
