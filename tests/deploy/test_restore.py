"""Yesterday's dump is restored: nodes come back by themselves, and the history says that the control plane was away."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.deploy import backups
from tests.deploy.parts import BEAT_SECONDS, NodeAgent, Stack
from tests.parts.ports import until

LONG_AGO = 4.0 * BEAT_SECONDS
"""Longer than the control plane may be silent without noticing it (MODELFORGE_GAP_SECONDS)."""
NewAgent = Callable[..., NodeAgent]


def test_a_restored_dump_brings_the_nodes_back(
    stack: Stack, agent: NodeAgent, new_agent: NewAgent, tmp_path: Path
) -> None:
    agent.wait_online()
    before = agent.node_id
    backups.dump(stack, tmp_path / "d")
    dumped = time.monotonic()
    later = new_agent().join("enrolled after the dump")
    stranger = later.node_id
    began = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    backups.restore(stack, tmp_path / "d")
    until(lambda: time.monotonic() > dumped + LONG_AGO, "the dump is old", within=LONG_AGO)
    stack.server.compose("up", "-d", "--wait")
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    agent.wait_online()
    assert agent.node_id == before
    stack.manage("audit_verify")
    (gap,) = stack.site.events(type="control_plane.gap", since=began)
    assert gap["details"]["seconds"] > 0
    assert stack.site.events(type="node.offline", node=before, since=began) == []
    later.says("credential_unknown")
    # Invited again, it comes back as the node that it was.
    later.server.write(MODELFORGE_AGENT_ENROLLMENT_TOKEN=stack.invite("enrolled after the dump"))
    later.up()
    later.wait_online()
    assert later.node_id == stranger
