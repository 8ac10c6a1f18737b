"""A scripted control plane, agents as processes and agents in parts, each ended with its test."""

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
import trustme

from agent.roots import Ground
from tests.agent.processes import Agent
from tests.agent.proving import ground_in
from tests.agent.scripted import ControlPlane
from tests.agent.scripts import Script, Stuck
from tests.agent.secured import CA_NAME, Serve
from tests.agent.simulated import Parts
from tests.agent.working import Workplace


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


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """An artifact volume on a plain disk, outside any container."""
    return ground_in(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A worker and its surroundings, on told time."""
    made = Workplace(tmp_path)
    yield made
    made.ended()


@pytest.fixture
def script(place: Workplace) -> Iterator[Script]:
    """A job that runs until it is told otherwise."""
    made = Script()
    yield made
    made.finish.set()


@pytest.fixture
def stuck(place: Workplace) -> Iterator[Stuck]:
    """A job that does not hear."""
    made = Stuck()
    yield made
    made.let_go.set()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """A private CA."""
    return trustme.CA(organization_name=CA_NAME, organization_unit_name="tests")


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    """Its public certificate."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path / "ca.pem"


@pytest.fixture
def serve(authority: trustme.CA) -> Iterator[Serve]:
    """Starts control planes that show a certificate of the private CA."""
    made: list[ControlPlane] = []

    def start(*names: str, not_after: datetime | None = None) -> ControlPlane:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*(names or ("127.0.0.1",)), not_after=not_after).configure_cert(context)
        made.append(ControlPlane(context))
        return made[-1]

    yield start
    for plane in made:
        plane.close()
