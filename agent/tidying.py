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
_UNKNOWN: wire.Reading[int] = wire.Reading(reason="error")
_TROUBLE = (Failed, OSError, StuckError, RuntimeError)


@dataclass(frozen=True)
class Tidied:
    """What is left, and whether no deletion goes on any more."""

    partials: list[UUID]
    done: bool = True
    bytes: wire.Reading[int] = readings.UNSUPPORTED  # that they take, but for the running job's
    weights: dict[UUID, int] = field(default_factory=dict)  # of each; none where they could not be measured


class Tidying:
    """One line to each root for looks and one for deletions, which may take their time and go on by themselves.

    Args:
        partials: the jobs whose half-done files lie in a root.
        weigh: what room those of some take.
        forget: deletes those of some, and what an earlier process left of a deletion.
        being_deleted: what is listed no more and takes its room still, as a deletion lasts, was broken off, or erred.
    """

    def __init__(
        self,
        *,
        partials: Callable[[Path], list[UUID]],
        weigh: Callable[[Path, Sequence[UUID]], int],
        forget: Callable[[Path, Sequence[UUID]], None],
        being_deleted: Callable[[Path], Sequence[str]],
    ) -> None:
        self._partials = partials
        self._weigh = weigh
        self._forget = forget
        self._being_deleted = being_deleted
        self._lines: dict[Path, tuple[Bounded, Bounded]] = {}
        self._told: dict[Path, str] = {}  # the trouble that the log tells of already

    def tidy(self, root: Path, job_ids: Collection[UUID], running: wire.Job | None = None) -> Tidied:
        """Forget these jobs, list the others and weigh them; a disk that errs or hangs is only told of here."""
        listing, forgetting = self._lines.setdefault(root, (Bounded("partials"), Bounded("forget")))
        done, trouble = self._forgotten(forgetting, root, sorted(job_ids))
        try:
            left = listing.call(lambda: self._partials(root), WITHIN)
            undone = listing.call(lambda: self._being_deleted(root), WITHIN)  # last: a job may begin to delete any time
        except _TROUBLE as error:
            self._tell(root, error)
            return Tidied([], done, _UNKNOWN)
        self._tell(root, trouble)
        idle = [job_id for job_id in left if running is None or job_id != running.id]
        weights = self._weighed(listing, root, idle)
        if weights is None or undone or not done:
            return Tidied(left, done, _UNKNOWN, weights or {})
        return Tidied(left, done, readings.size(sum(weights.values())), weights)

    def _weighed(self, line: Bounded, root: Path, job_ids: list[UUID]) -> dict[UUID, int] | None:
        try:
            return line.call(lambda: {job_id: self._weigh(root, [job_id]) for job_id in job_ids}, WITHIN)
        except _TROUBLE:
            return None

    def _forgotten(self, line: Bounded, root: Path, job_ids: list[UUID]) -> tuple[bool, Exception | None]:
        """Whether no deletion goes on any more, and what one met; each look tries that again."""
        try:
            line.call(lambda: self._forget(root, job_ids), WITHIN)
        except StuckError:  # many files; the next look asks again
            return False, None
        except _TROUBLE as error:
            return True, error
        return True, None

    def _tell(self, root: Path, trouble: Exception | None) -> None:
        """Once for as long as it is the same."""
        if trouble is None:
            self._told.pop(root, None)
            return
        said = type(trouble).__name__ if isinstance(trouble, StuckError) else str(trouble)  # that one counts seconds
        if self._told.get(root) != said:
            self._told[root] = said
            log.warning("half-done files in a storage root cannot be tidied: %s", trouble, extra={"root": str(root)})
