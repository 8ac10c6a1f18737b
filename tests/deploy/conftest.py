"""The real engine with one base stack for all; collected only where somebody asks for tests/deploy by its name."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import engine, server
from tests.deploy.parts import AGENT_FILES, NodeAgent, Stack


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """They need an engine and minutes: `make test` goes without them, `make deploy-test` names them."""
    asked = any("deploy" in Path(str(name).partition("::")[0]).parts for name in config.args)
    return None if asked else True


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the crowd beats."""
    parser.addoption("--crowd-seconds", default="300", help="how long a thousand agents beat (300)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The crowd comes last: it leaves a thousand nodes, and longer intervals for everybody."""
    items.sort(key=lambda item: "test_crowd" in item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """A failure comes with what the containers said, for they are gone when somebody reads it."""
    report = yield
    if report.failed:
        for name, part in getattr(item, "funcargs", {}).items():
            if isinstance(part, Stack | NodeAgent):
                lines = part.server.logs("--timestamps", "--tail", "60").splitlines()
                report.sections.append((f"containers of {name}", "\n".join(line[:400] for line in lines)))
    return report


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A base stack, up from nothing; gone in the end, with its volumes and all images that were built."""
    if not engine.answers():
        pytest.fail("No Docker Engine answers; `make deploy-test` says how to bring one up.")
    made = Stack(tmp_path_factory.mktemp("stack"))
    try:
        yield made.up()
    finally:
        made.server.remove()
        server.remove_images()


@pytest.fixture
def new_agent(stack: Stack, tmp_path: Path) -> Iterator[Callable[..., NodeAgent]]:
    """Agents on servers of their own, each with its .env; gone after the test."""
    made: list[NodeAgent] = []

    def make(files: tuple[str, ...] = AGENT_FILES, **variables: str) -> NodeAgent:
        agent = NodeAgent(tmp_path / f"server{len(made) + 1}", stack, files, **variables)
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.server.remove()


@pytest.fixture(scope="session")
def agent(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeAgent]:
    """One agent that joined and is online, for tests that leave it so."""
    made = NodeAgent(tmp_path_factory.mktemp("agent"), stack)
    try:
        yield made.join()
    finally:
        made.server.remove()
