"""Half-done files in a proven root: which jobs' lie there, and which are deleted because nobody needs them."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from agent.acquire.terms import Failed
from agent.bounded import Bounded, StuckError

log = logging.getLogger(__name__)

WITHIN = timedelta(seconds=5)


@dataclass(frozen=True)
class Tidied:
    """What is left, and whether all that was to go is gone."""

    partials: list[UUID]
    done: bool = True


class Tidying:
    """One line to each root for looks and one for deletions, which may take their time and go on by themselves."""

    def __init__(
        self, *, partials: Callable[[Path], list[UUID]], forget: Callable[[Path, Sequence[UUID]], None]
    ) -> None:
        self._partials = partials
        self._forget = forget
        self._lines: dict[Path, tuple[Bounded, Bounded]] = {}

    def tidy(self, root: Path, job_ids: Collection[UUID]) -> Tidied:
        """Forget these jobs, and list the others; a disk that errs or hangs is only told of here."""
        listing, forgetting = self._lines.setdefault(root, (Bounded("partials"), Bounded("forget")))
        done = True
        try:
            if job_ids:
                done = self._forgotten(forgetting, root, sorted(job_ids))
            return Tidied(listing.call(lambda: self._partials(root), WITHIN), done)
        except (Failed, OSError, StuckError, RuntimeError) as error:
            log.warning("half-done files in a storage root cannot be tidied: %s", error, extra={"root": str(root)})
            return Tidied([], done)

    def _forgotten(self, line: Bounded, root: Path, job_ids: list[UUID]) -> bool:
        try:
            line.call(lambda: self._forget(root, job_ids), WITHIN)
        except StuckError:  # many files; the next look asks again
            return False
        return True
