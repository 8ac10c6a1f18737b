"""The three things that an agent and its control plane say about jobs: a claim, progress, a result."""

from datetime import datetime

from agent import wire
from agent.protocol import MAX_CLAIM_BYTES, MAX_PROGRESS_BYTES, MAX_RESULT_BYTES
from artifacts import claims, progress, results
from nodes.agent_view import AgentView
from nodes.callers import NodeCaller


class ClaimView(AgentView):
    """``POST agent/jobs/claim``: what the agent found at its roots, and whether there is a job for it."""

    message = wire.Claim
    limit = MAX_CLAIM_BYTES

    def receive(self, message: wire.Claim, *, by: NodeCaller, now: datetime) -> wire.ClaimReply:
        """Take the proofs, give at most one job."""
        return claims.claim(message, by=by, now=now)


class ProgressView(AgentView):
    """``POST agent/jobs/{id}/progress``: keeps the lease, and says how far the job is."""

    message = wire.Progress
    limit = MAX_PROGRESS_BYTES

    def receive(self, message: wire.Progress, *, by: NodeCaller, now: datetime) -> wire.ProgressReply:
        """Note it; say whether to stop."""
        return progress.tell(self.kwargs["id"], message, by=by, now=now)


class ResultView(AgentView):
    """``POST agent/jobs/{id}/result``: how the job ended; it may be told again until it is answered."""

    message = wire.Result
    limit = MAX_RESULT_BYTES

    def receive(self, message: wire.Result, *, by: NodeCaller, now: datetime) -> wire.ResultReply:
        """Take it once."""
        return results.finish(self.kwargs["id"], message, by=by, now=now)
