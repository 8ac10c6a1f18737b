"""GPUs in the hardened container: a stand-in for the driver's library, mounted as the NVIDIA runtime mounts it."""

import json
from collections.abc import Callable

from tests.deploy.parts import AGENT_FILES, NodeAgent, Stack
from tests.nvml import standin
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]
FOLDER = "/usr/local/nvidia/lib64"


def gpus_of(stack: Stack, agent: NodeAgent) -> set[str]:
    """The UUIDs that the node's page shows."""
    until(lambda: stack.node(agent.node_id)["accelerators"], "its GPUs are told", every=0.5)
    return {gpu["uuid"] for gpu in stack.node(agent.node_id)["accelerators"]}


def test_gpus_are_seen_without_a_right_more_and_keep_their_names(stack: Stack, new_agent: NewAgent) -> None:
    agent = new_agent((*AGENT_FILES, "gpus.yml"))
    service = {
        "environment": {"LD_LIBRARY_PATH": FOLDER, "NVML_DEVICES": "2"},
        "volumes": [f"{standin.library()}:{FOLDER}:ro"],
    }
    (agent.server.folder / "gpus.yml").write_text(json.dumps({"services": {"node-agent": service}}))
    agent.join("with GPUs")
    before, node = gpus_of(stack, agent), agent.node_id
    assert len(before) == 2
    assert stack.node(node)["gpu_runtime_state"] == "ready"
    agent.server.compose("up", "-d", "--force-recreate", "node-agent")
    agent.wait_online()
    assert agent.node_id == node
    assert gpus_of(stack, agent) == before
