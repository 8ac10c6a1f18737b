"""The three things that a node says about itself: that it lives, what it is, and that it stops."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema

from agent import wire
from agent.protocol import MAX_BEAT_BYTES, MAX_FACTS_BYTES
from nodes import heartbeats, inventory, telemetry
from nodes.agent_view import AgentView
from nodes.callers import NodeCaller
from nodes.serializers_parts import wire_type


def spoken(name: str) -> dict[str, Any]:
    """A wire message as a request or an answer in the schema."""
    return {"application/json": wire_type(name)}


@extend_schema(
    tags=["agent"],
    summary="Beat",
    request=spoken("Beat"),
    responses={(200, "application/json"): wire_type("BeatReply")},
)
class HeartbeatView(AgentView):
    """``POST agent/heartbeat``: small and frequent; now and then with a telemetry sample."""

    message = wire.Beat
    limit = MAX_BEAT_BYTES

    def receive(self, message: wire.Beat, *, by: NodeCaller, now: datetime) -> wire.BeatReply:
        """Hear the beat, keep its sample, say what to do next."""
        reply = heartbeats.receive(message, by=by, now=now)
        if message.telemetry is not None:
            telemetry.keep(by.node_id, message.telemetry, now=now)
        return reply


@extend_schema(
    tags=["agent"],
    summary="Publish facts",
    request=spoken("Facts"),
    responses={(200, "application/json"): wire_type("FactsReply")},
)
class FactsView(AgentView):
    """``PUT agent/facts``: large and rare."""

    message = wire.Facts
    method = "PUT"
    limit = MAX_FACTS_BYTES

    def receive(self, message: wire.Facts, *, by: NodeCaller, now: datetime) -> wire.FactsReply:
        """Take the facts as the present ones."""
        return inventory.publish(message, by=by, now=now)


@extend_schema(tags=["agent"], summary="Say goodbye", request=spoken("Goodbye"), responses={204: None})
class GoodbyeView(AgentView):
    """``POST agent/goodbye``: a planned stop, told apart from silence."""

    message = wire.Goodbye

    def receive(self, message: wire.Goodbye, *, by: NodeCaller, now: datetime) -> None:
        """Note the stop; nothing to say back."""
        heartbeats.farewell(message, by=by, now=now)
