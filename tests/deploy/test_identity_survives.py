"""Who a node is survives all that happens to containers; only its volume can be lost, and the way back is short."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy import engine
from tests.deploy.parts import AGENT_FILES, NodeAgent, Stack
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]
BINDABLE = {
    "state": "MODELFORGE_AGENT_STATE_VOLUME",
    "hf-cache": "MODELFORGE_AGENT_HF_CACHE_VOLUME",
    "artifacts": "MODELFORGE_AGENT_ARTIFACT_VOLUME",
    "quarantine": "MODELFORGE_AGENT_QUARANTINE_VOLUME",
}


def test_down_and_up_keep_the_node(stack: Stack, agent: NodeAgent) -> None:
    before = agent.node_id
    agent.server.compose("down")
    assert stack.node(before)["stopped_at"]  # it said goodbye
    agent.up()
    agent.wait_online()
    assert agent.node_id == before


def test_a_recreated_container_needs_no_token(agent: NodeAgent) -> None:
    before, container = agent.node_id, agent.container
    assert "MODELFORGE_AGENT_ENROLLMENT_TOKEN" not in agent.server.variables
    agent.server.compose("up", "-d", "--force-recreate", "node-agent")
    agent.wait_online()
    assert agent.container != container
    assert agent.node_id == before


def test_a_reboot_of_the_host_brings_everything_back(stack: Stack, agent: NodeAgent) -> None:
    before = agent.node_id
    started = engine.inspect(agent.container)["State"]["StartedAt"]
    engine.reboot([*stack.server.containers(), agent.container])
    agent.wait_online(within=120)
    assert engine.inspect(agent.container)["State"]["StartedAt"] != started
    assert agent.node_id == before
    until(stack.is_ready, "the stack is ready again", within=120, every=0.5)


def test_a_lost_state_volume_is_a_clear_end_and_the_node_comes_back(stack: Stack, new_agent: NewAgent) -> None:
    """docs/deploy.md, "The state volume is lost": the same node, by its id and a fresh credential."""
    agent = new_agent().join("loses its volume")
    before = agent.node_id
    agent.server.compose("down", "--volumes")
    agent.up()
    assert agent.wait_ended() == 78
    assert "MODELFORGE_AGENT_ENROLLMENT_TOKEN" in agent.log()
    agent.server.compose("down")
    write = ("run", "--rm", "-T", "--entrypoint", "sh", "node-agent", "-c", "umask 077; cat >/data/state/node-id")
    agent.server.compose(*write, stdin=before + "\n")
    fresh = stack.site.api("POST", f"admin/nodes/{before}/credential/rotate", {"overlap_seconds": 0})["credential"]
    agent.server.compose("run", "--rm", "-T", "node-agent", "credential", "set", stdin=fresh)
    agent.up()
    agent.wait_online()
    assert agent.node_id == before


def test_a_lost_state_volume_may_also_mean_a_new_node(stack: Stack, new_agent: NewAgent) -> None:
    agent = new_agent().join("starts anew")
    before = agent.node_id
    agent.server.compose("down", "--volumes")
    agent.join("started anew")
    assert agent.node_id != before
    stack.site.api("POST", f"admin/nodes/{before}/retire", {"reason": "its state was lost"})
    assert stack.node(before)["retired"] is True


@pytest.mark.parametrize("variable", BINDABLE.values(), ids=BINDABLE)
def test_the_hosts_root_is_never_a_volume(new_agent: NewAgent, variable: str) -> None:
    agent = new_agent(**{variable: "/"}).up()
    assert agent.wait_ended() == 78
    assert variable in agent.log()
    assert "is the root of a whole system" in agent.log()
    assert "chown" not in agent.log()


def test_folders_that_are_not_ours_are_told_with_uid_path_and_command(
    stack: Stack, new_agent: NewAgent, tmp_path: Path
) -> None:
    """As on Unraid: narrow bind paths, two of them made by root; the command that the agent names mends each."""
    folders = {name: tmp_path / name for name in BINDABLE}
    for folder in folders.values():
        folder.mkdir(mode=0o755)
    agent = new_agent(**{BINDABLE[name]: str(folder) for name, folder in folders.items()})
    agent.server.write(MODELFORGE_AGENT_ENROLLMENT_TOKEN=stack.invite("on bind paths"))
    for name in ("hf-cache", "quarantine"):
        engine.give(folders[name], f"/data/{name}")
    agent.up()
    assert agent.wait_ended() == 74
    for name in ("state", "artifacts"):
        agent.says(f"/data/{name} cannot be read and written by uid 10001")
        assert f"chown -R 10001:10001 /data/{name}" in agent.log()
        engine.give(folders[name], f"/data/{name}")
    agent.wait_online(within=90)
    assert (folders["state"] / "node-id").read_text().strip() == agent.node_id
    assert (folders["state"] / "node-credential").stat().st_mode & 0o777 == 0o600
    mounts = {mount["Destination"]: mount for mount in engine.inspect(agent.container)["Mounts"]}
    assert {mounts[f"/data/{name}"]["Source"] for name in folders} == {str(folder) for folder in folders.values()}


def test_a_folder_of_the_containers_own_is_no_volume(new_agent: NewAgent) -> None:
    agent = new_agent((*AGENT_FILES, "unmounted.yml"))
    (agent.server.folder / "unmounted.yml").write_text(
        "services: {node-agent: {volumes: !override ['node-agent-state:/data/state', "
        "'${MODELFORGE_AGENT_CA_CERT_PATH}:/etc/modelforge/control-plane-ca.crt:ro']}}\n"
    )
    agent.up()
    assert agent.wait_ended() == 78
    for name in ("HF_CACHE", "ARTIFACT", "QUARANTINE"):
        assert f"MODELFORGE_AGENT_{name}_VOLUME" in agent.log()
