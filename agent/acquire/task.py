"""What the steps of one job work with: its order, its root, the agent's tools, and how far it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agent import wire
from agent.acquire.disk.held import Held
from agent.acquire.disk.known import Known
from agent.acquire.disk.quarantine import Quarantine
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Notes, Tally


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What all jobs of this agent work with."""

    source: Source
    pace: Pace
    quarantine: Quarantine
    hf_cache: Path
    now: Callable[[], datetime]
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one job works with."""

    job: wire.Job
    tools: Tools
    brake: Brake
    tally: Tally
    notes: Notes
    tell: Callable[[], None]  # returns when the control plane has answered what the tally says
    held: Held
    known: Known = field(default_factory=Known)

    def still(self) -> None:
        """Raises ``Failed`` where the root is no longer what was approved."""
        self.held.still()

    @property
    def root(self) -> Path:
        """The storage root that the job is about."""
        return Path(self.job.order.path)

    def succeeded(self, **more: object) -> wire.Result:
        """What is told of a good end."""
        return wire.Result(
            lease_id=self.job.lease_id,
            outcome="succeeded",
            commit=self.tally.commit,
            quarantined=self.notes.quarantined[: wire.MAX_QUARANTINED],
            **more,  # type: ignore[arg-type]  # one of the result's own fields
        )
