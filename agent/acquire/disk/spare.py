"""Makes room out of what cancelled jobs left half done: kept for another try only as long as nobody lacks room."""

import logging
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from agent import wire
from agent.acquire.disk import guard, partial, remove
from agent.acquire.disk.guard import Room
from agent.acquire.terms import Plan

log = logging.getLogger(__name__)


def make_room(plan: Plan, *, order: wire.AcquireOrder, root: Path, job_id: UUID, held_bytes: int) -> None:
    """Forget cancelled jobs, one after the other, until the plan fits; none where all of them would not do."""
    found = guard.room(plan, order=order, root=root, held_bytes=held_bytes)
    lacking = found.needed_bytes - found.free_bytes
    if lacking <= 0:
        return
    others = [other for other in order.expendable if other != job_id]
    weights = {other: partial.lying_bytes(root, [other]) for other in others}
    if sum(weights.values()) < lacking:
        return
    for other, weight in weights.items():
        if weight and lacking > 0:
            extra = {"job_id": str(job_id), "cancelled": str(other), "bytes": weight}
            log.info("the half-done files of a cancelled job make room", extra=extra)
            remove.forget(root, [other])
            lacking -= weight


def fits(room: Room, order: wire.AcquireOrder, root: Path) -> bool:
    """Whether there is room, or would be without what cancelled jobs left."""
    if not room.lacks:
        return True
    return not replace(room, free_bytes=room.free_bytes + partial.lying_bytes(root, order.expendable)).lacks
