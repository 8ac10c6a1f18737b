"""The Compose files as texts: they hand on every variable that the processes know, and open nothing on the way."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.variables import KNOWN
from modelforge.settings import env

COMPOSE = Path(__file__).parents[2] / "compose"
READ_BY_COMPOSE = {
    "MODELFORGE_AGENT_STATE_VOLUME",
    "MODELFORGE_AGENT_HF_CACHE_VOLUME",
    "MODELFORGE_AGENT_ARTIFACT_VOLUME",
    "MODELFORGE_AGENT_QUARANTINE_VOLUME",
    "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ALIAS",
    "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ADDRESS",
}
FIXED_IN_THE_IMAGE = {
    *(f"MODELFORGE_AGENT_{name}_DIR" for name in ("STATE", "HF_CACHE", "ARTIFACT", "QUARANTINE", "RUN")),
    "MODELFORGE_QUEUE_DIR",  # Redis is there
    "MODELFORGE_DEBUG",  # never in production
    "MODELFORGE_CLIENT_HEADER",  # the stack's proxy says the usual one
}


class Loader(yaml.SafeLoader):
    """Reads Compose's own tags as the values behind them."""


def _plain(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


Loader.add_multi_constructor("!", _plain)


def services(name: str) -> dict[str, Any]:
    return dict(yaml.load((COMPOSE / name).read_text(), Loader)["services"])  # noqa: S506 - a safe one


def handed_on(*names: str, service: str) -> set[str]:
    """The names that a service's environment holds, a secret's file counting for the secret."""
    found = {name for file in names for name in services(file)[service].get("environment", {})}
    return {name.removesuffix("_FILE") for name in found}


AGENT = [path.name for path in sorted(COMPOSE.glob("docker-compose.node-agent*.yml"))]


def test_the_agent_is_handed_every_variable_that_it_knows() -> None:
    known = {name.removesuffix("_FILE") for name in KNOWN}
    missing = known - handed_on(*AGENT, service="node-agent") - READ_BY_COMPOSE - FIXED_IN_THE_IMAGE
    assert missing == set()


@pytest.mark.parametrize("service", ["web", "worker", "beat", "migrate"])
def test_the_control_plane_is_handed_every_variable_that_it_knows(service: str) -> None:
    missing = env._read - handed_on("docker-compose.yml", service=service) - FIXED_IN_THE_IMAGE
    assert missing == set()


def test_no_file_asks_for_more_than_it_needs() -> None:
    text = "".join(path.read_text() for path in COMPOSE.glob("*.yml"))
    for word in ("docker.sock", "privileged", "network_mode", "pid: host", "SYS_ADMIN", "unconfined"):
        assert word not in text


@pytest.mark.parametrize("service", sorted(services("docker-compose.yml")))
def test_only_the_proxy_has_a_port(service: str) -> None:
    assert ("ports" in services("docker-compose.yml")[service]) is (service == "proxy")


def test_the_agent_has_none() -> None:
    assert not [file for file in AGENT if "ports" in services(file)["node-agent"]]
