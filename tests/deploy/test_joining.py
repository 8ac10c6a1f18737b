"""An agent joins by the documentation's commands and variables, over HTTPS under a CA that only ModelForge trusts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy import engine
from tests.deploy.parts import AGENT_FILES, PLAIN_AGENT_FILES, NodeAgent, Stack
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]


def test_it_is_online_over_https_under_the_private_ca(stack: Stack, agent: NodeAgent) -> None:
    node = stack.node(agent.node_id)
    assert node["liveness"] == "online"
    assert node["hostname"] == "server01"
    assert node["role"] == "primary-inference"
    assert node["tls_verify"] is True
    told = until(lambda: stack.node(agent.node_id).get("facts"), "its facts are told")
    assert isinstance(told, dict)
    assert told["agent"]["ca"] == "file"


def test_docker_finds_it_healthy(agent: NodeAgent) -> None:
    seen = lambda: engine.inspect(agent.container)["State"]["Health"]["Status"] == "healthy"  # noqa: E731
    until(seen, "docker calls it healthy", within=60, every=0.5)


def test_without_the_overlay_it_names_the_ca_and_the_variable_and_trusts_nobody(
    stack: Stack, new_agent: NewAgent
) -> None:
    """The alias alone, as a DNS would tell the address."""
    agent = new_agent((*PLAIN_AGENT_FILES, "alias.yml"))
    (agent.server.folder / "alias.yml").write_text(
        f"services: {{node-agent: {{extra_hosts: ['{stack.site.name}:host-gateway']}}}}\n"
    )
    token = stack.invite("lost")
    agent.server.write(MODELFORGE_AGENT_ENROLLMENT_TOKEN=token)
    agent.up()
    agent.says("MODELFORGE_AGENT_CA_CERT_PATH")
    assert "Caddy Local Authority" in agent.log()
    assert agent.status()["credential"] == "none"
    waiting = [t for t in stack.site.api("GET", "admin/node-enrollments")["results"] if t["display_name"] == "lost"]
    assert [t["state"] for t in waiting] == ["open"]


def test_the_token_may_come_by_standard_input_and_never_stand_in_a_file(stack: Stack, new_agent: NewAgent) -> None:
    agent = new_agent()
    token = stack.invite("by standard input")
    command = ("run", "--rm", "-T", "--build", "node-agent", "enroll", "--token-file", "-")
    assert "Enrolled as" in agent.server.compose(*command, stdin=token)
    agent.up()
    assert agent.wait_online()["display_name"] == "by standard input"
    assert token not in json.dumps(engine.inspect(agent.container))


def test_the_token_may_come_by_a_file(stack: Stack, new_agent: NewAgent, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(stack.invite("by file") + "\n")
    token.chmod(0o444)
    files = (*AGENT_FILES, "docker-compose.node-agent.secret-files.yml")
    agent = new_agent(files, MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE=str(token))
    agent.up()
    assert agent.wait_online()["display_name"] == "by file"
    assert token.read_text().strip() not in json.dumps(engine.inspect(agent.container))


def test_the_files_may_be_named_once_in_env(new_agent: NewAgent) -> None:
    """COMPOSE_FILE, as the documentation has it, means the same as naming them in every command."""
    agent = new_agent()
    named = agent.server.compose("config")
    agent.server.write(COMPOSE_FILE=":".join(agent.server.files))
    assert engine.run(["docker", "compose", "config"], cwd=agent.server.folder).stdout.strip() == named


@pytest.mark.parametrize("name", ["MODELFORGE_AGENT_CONTROL_PLANE_URL", "MODELFORGE_AGENT_CA_CERT_PATH"])
def test_compose_says_which_variable_is_missing(new_agent: NewAgent, name: str) -> None:
    agent = new_agent()
    agent.server.write(**{name: None})
    code, _, told = agent.server.tried("config", "--quiet")
    assert code != 0
    assert name in told


def test_a_missing_certificate_is_no_folder_made_in_its_place(new_agent: NewAgent, tmp_path: Path) -> None:
    agent = new_agent(MODELFORGE_AGENT_CA_CERT_PATH=str(tmp_path / "nothing.crt"))
    code, _, told = agent.server.tried("up", "-d")
    assert code != 0
    assert "nothing.crt" in told
    assert not (tmp_path / "nothing.crt").exists()
