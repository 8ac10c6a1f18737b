"""A scripted control plane, agents as processes and agents in parts, each ended with its test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.processes import Agent
from tests.agent.scripted import ControlPlane
from tests.agent.simulated import Parts


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A control plane over plain HTTP on loopback."""
    made = ControlPlane()
    yield made
    made.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Agent]]:
    """Starts ``python -m agent run`` with the given environment."""
    started: list[Agent] = []

    def begin(env: dict[str, str]) -> Agent:
        started.append(Agent(env, cwd=tmp_path))
        return started[-1]

    yield begin
    for agent in started:
        agent.end()


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """An enrolled agent in parts, on told time."""
    return Parts(tmp_path)
