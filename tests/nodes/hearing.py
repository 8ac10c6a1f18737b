"""A small fleet for the tests of hearing: nodes, the callers that their credentials would prove, and their beats."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.wire import Beat, BeatReply
from nodes import heartbeats
from nodes.audit import events
from nodes.callers import NodeCaller, Role
from nodes.liveness import Liveness
from nodes.models import Heartbeat, Node

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
INTERVAL = timedelta(seconds=15)


def a_node(name: str = "server01", **fields: object) -> Node:
    """A node as admission leaves it: enrolled, never heard."""
    node = Node.objects.create(
        display_name=name, hostname=name, enrolled_at=START, updated_at=START, facts_digest="known", **fields
    )
    Heartbeat.objects.create(node=node)
    return node


def speaker(node: Node, address: str = "192.0.2.7") -> NodeCaller:
    """The caller that this node's credential would prove right now."""
    node = Node.objects.select_related("heartbeat").get(pk=node.pk)
    heart = node.heartbeat
    return NodeCaller(
        kind="node",
        role=Role.NODE,
        id=str(node.pk),
        label=node.display_name,
        address=address,
        node_id=node.pk,
        credential_id=uuid.uuid4(),
        enabled=node.enabled,
        retired=node.retired_at is not None,
        protocol_refused=node.protocol_refused_at is not None,
        refused=bool(node.refused_code),
        renew_credential=False,
        want_facts=node.want_facts,
        work_waits=node.work_waits,
        facts_digest=node.facts_digest,
        liveness=Liveness(heart.liveness),
        boot_id=heart.boot_id,
        sequence=heart.sequence,
        stale_at=heart.stale_at,
        interval_seconds=heart.interval_seconds,
    )


class Agent:
    """One process of a node's agent: beats in order, from its own boot."""

    def __init__(
        self, node: Node, *, version: str = "0.1.0", clock_off: timedelta = timedelta(), **caller: str
    ) -> None:
        self.node, self.boot_id, self.sequence = node, uuid.uuid4(), 0
        self.version, self.clock_off, self.caller = version, clock_off, caller

    def message(self, now: datetime, **fields: object) -> Beat:
        """The next beat, unsent."""
        self.sequence += 1
        said: dict[str, Any] = {"boot_id": self.boot_id, "sequence": self.sequence, "sent_at": now + self.clock_off}
        return Beat(**(said | {"agent_version": self.version, "facts_digest": "known"} | fields))

    def beat(self, now: datetime, **fields: object) -> BeatReply:
        """Send the next beat; the reply, or the refusal raised."""
        return heartbeats.receive(self.message(now, **fields), by=speaker(self.node, **self.caller), now=now)


def told(*types: str) -> list[str]:
    """The history's types in order (of these types, where some are named)."""
    return [event.type for event in events().order_by("position") if not types or event.type in types]


def state_of(node: Node) -> str:
    """The stored liveness."""
    return Heartbeat.objects.get(node=node).liveness
