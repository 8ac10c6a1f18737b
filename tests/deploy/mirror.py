"""A mirror of the Hub in the house: the stand-in Hub under a CA of its own, by a name in a network of containers."""

import json
import shutil
import tempfile
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trustme

from tests.deploy import relay
from tests.deploy.engine import docker
from tests.deploy.parts import NodeAgent
from tests.hub.hub import Hub

NAME = "hub.modelforge.test"
PYTHON = "python:3.13-slim-trixie"
OVERLAY = "mirror.yml"


class Mirror:
    """``hub`` is asked under ``NAME`` by whoever was ``joined``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.hub = Hub(trustme.CA(), folder=folder, name=NAME)
        assert self.hub.ca_file is not None
        self.ca: Path = self.hub.ca_file
        self.ca.chmod(0o644)
        self.network = f"modelforge-test-{uuid.uuid4().hex[:8]}-hub"
        self._sockets = Path(tempfile.mkdtemp(prefix="modelforge-hub-"))  # a socket's path must be short

    def __enter__(self) -> Self:
        ports = [origin.port for origin in (self.hub.hub, self.hub.cdn, self.hub.elsewhere)]
        self._relay = relay.Relay(self._sockets, ports)
        docker("network", "create", "--internal", self.network)
        docker(
            "run", "--detach", "--rm", "--init", "--name", self.network,
            "--network", self.network, "--network-alias", NAME,
            "--volume", f"{self._sockets}:/sockets", "--volume", f"{relay.__file__}:/relay.py:ro",
            PYTHON, "python", "/relay.py", "/sockets", *map(str, ports),
        )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        docker("rm", "--force", self.network, check=False)
        docker("network", "rm", self.network, check=False)
        self._relay.close()
        self.hub.stop()
        shutil.rmtree(self._sockets)

    def join(self, agent: NodeAgent) -> None:
        """Put the agent's server into the mirror's network, as a DNS and a cable would."""
        networks: dict[str, Any] = {"default": {}, "hub": {}}
        told = {
            "services": {"node-agent": {"networks": networks}},
            "networks": {"hub": {"external": True, "name": self.network}},
        }
        (agent.server.folder / OVERLAY).write_text(json.dumps(told))
        agent.server.files = (*agent.server.files, OVERLAY)
        agent.server.write(HF_ENDPOINT=self.hub.url)
