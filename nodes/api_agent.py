"""The three things that a node says about itself: that it lives, what it is, and that it stops."""

from datetime import datetime

from agent import wire
from agent.protocol import MAX_BEAT_BYTES, MAX_FACTS_BYTES
from nodes import heartbeats, inventory, telemetry
from nodes.agent_view import AgentView
from nodes.callers import NodeCaller


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


class FactsView(AgentView):
    """``PUT agent/facts``: large and rare."""

    message = wire.Facts
    method = "PUT"
    limit = MAX_FACTS_BYTES

    def receive(self, message: wire.Facts, *, by: NodeCaller, now: datetime) -> wire.FactsReply:
        """Take the facts as the present ones."""
        return inventory.publish(message, by=by, now=now)


class GoodbyeView(AgentView):
    """``POST agent/goodbye``: a planned stop, told apart from silence."""

    message = wire.Goodbye

    def receive(self, message: wire.Goodbye, *, by: NodeCaller, now: datetime) -> None:
        """Note the stop; nothing to say back."""
        heartbeats.farewell(message, by=by, now=now)
