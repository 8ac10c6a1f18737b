"""The control plane moves to another server: its nodes come along with their credentials, and its CA stays."""

from collections.abc import Callable
from pathlib import Path

from tests.deploy import backups
from tests.deploy.engine import give
from tests.deploy.parts import NAME, NodeAgent, Stack
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]


def test_a_node_follows_to_another_address_under_the_same_ca(stack: Stack, new_agent: NewAgent, tmp_path: Path) -> None:
    agent = new_agent().join("moves along")
    before = agent.node_id
    address = agent.python(f"import socket; print(socket.gethostbyname('{NAME}'))")
    backups.dump(stack, tmp_path / "dump")
    backups.dump_ca(stack, tmp_path / "ca.tar")
    keys = tmp_path / "keys"
    keys.mkdir()
    give(keys, "/keys")
    other = Stack(tmp_path / "other", MODELFORGE_KEYS_VOLUME=str(keys))
    try:
        backups.restore_ca(other, tmp_path / "ca.tar")
        other.up()
        backups.restore(other, tmp_path / "dump")
        other.server.compose("up", "-d", "--wait")
        until(other.is_ready, "the control plane is ready at its new place", within=60, every=0.2)
        assert other.site.admin_token == (keys / "operator-api-key").read_text().strip()
        assert other.site.ca.read_text() == stack.site.ca.read_text()
        agent.server.write(
            MODELFORGE_AGENT_CONTROL_PLANE_URL=other.site.url, MODELFORGE_AGENT_CONTROL_PLANE_HOST_ADDRESS=address
        )
        agent.up()
        agent.stack = other
        assert agent.wait_online()["display_name"] == "moves along"
        assert agent.node_id == before
        other.manage("audit_verify")
    finally:
        other.server.remove()
