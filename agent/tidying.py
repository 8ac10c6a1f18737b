"""Half-done files in a proven root: whose they are, what room they take, and which are deleted: nobody needs them."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from agent import readings, wire
from agent.acquire.terms import Failed
from agent.bounded import Bounded, StuckError

log = logging.getLogger(__name__)

WITHIN = timedelta(seconds=5)
_TROUBLE = (Failed, OSError, StuckError, RuntimeError)


@dataclass(frozen=True)
class Tidied:
    """What is left, and whether all that was to go is gone."""

    partials: list[UUID]
    done: bool = True
    bytes: wire.Reading[int] = readings.UNSUPPORTED  # that they take, but for the running job's
    weights: dict[UUID, int] = field(default_factory=dict)  # of each; none where they could not be measured


class Tidying:
    """One line to each root for looks and one for deletions, which may take their time and go on by themselves."""

    def __init__(
        self,
        *,
        partials: Callable[[Path], list[UUID]],
        weigh: Callable[[Path, Sequence[UUID]], int],
        forget: Callable[[Path, Sequence[UUID]], None],
    ) -> None:
        self._partials = partials
        self._weigh = weigh
        self._forget = forget
        self._lines: dict[Path, tuple[Bounded, Bounded]] = {}

    def tidy(self, root: Path, job_ids: Collection[UUID], running: wire.Job | None = None) -> Tidied:
        """Forget these jobs, list the others and weigh them; a disk that errs or hangs is only told of here."""
        listing, forgetting = self._lines.setdefault(root, (Bounded("partials"), Bounded("forget")))
        done = True
        try:
            if job_ids:
                done = self._forgotten(forgetting, root, sorted(job_ids))
            left = listing.call(lambda: self._partials(root), WITHIN)
        except _TROUBLE as error:
            log.warning("half-done files in a storage root cannot be tidied: %s", error, extra={"root": str(root)})
            return Tidied([], done)
        idle = [job_id for job_id in left if running is None or job_id != running.id]
        weights = self._weighed(listing, root, idle)
        if weights is None or not done:  # what is being deleted is on no list any more, and takes its room still
            return Tidied(left, done, wire.Reading(reason="error"), weights or {})
        return Tidied(left, done, readings.size(sum(weights.values())), weights)

    def _weighed(self, line: Bounded, root: Path, job_ids: list[UUID]) -> dict[UUID, int] | None:
        try:
            return line.call(lambda: {job_id: self._weigh(root, [job_id]) for job_id in job_ids}, WITHIN)
        except _TROUBLE:
            return None

    def _forgotten(self, line: Bounded, root: Path, job_ids: list[UUID]) -> bool:
        try:
            line.call(lambda: self._forget(root, job_ids), WITHIN)
        except StuckError:  # many files; the next look asks again
            return False
        return True
