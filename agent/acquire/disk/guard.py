"""Whether a snapshot fits: its missing bytes, what other jobs will write and what must stay free, against the disk."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent import wire
from agent.acquire import places
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Failed, Plan, Tally
from agent.readings import amount

_OWN_NAMES = 8  # manifest, job.json, and folders of the job and of the repository

_MOST = 2**63 - 1  # on the wire; a file system without a bound may tell more

Space = Callable[[int], os.statvfs_result]
"""What a descriptor's file system says of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a plan needs and what there is, in bytes; inodes None where the file system does not count them."""

    missing_bytes: int  # of the plan, not here yet
    reserved_bytes: int  # still to be written by other jobs of this node
    reserve_bytes: int  # to be left free
    free_bytes: int
    plan_bytes: int
    room_bytes: int | None  # under the root's ceiling; None: it has none
    inodes_needed: int
    inodes_free: int | None

    @property
    def needed_bytes(self) -> int:
        """To be free now."""
        return self.missing_bytes + self.reserved_bytes + self.reserve_bytes

    @property
    def lacks(self) -> str:
        """What there is too little of, in words; "" where the plan fits."""
        if self.needed_bytes > self.free_bytes:
            return (
                f"The snapshot needs {amount(self.missing_bytes)} more, other jobs {amount(self.reserved_bytes)}, and "
                f"{amount(self.reserve_bytes)} shall stay free: {amount(self.needed_bytes)} in all, but "
                f"{amount(self.free_bytes)} are free. "
                "Make room on the disk, or lower the root's reserve."
            )
        if self.room_bytes is not None and self.plan_bytes > self.room_bytes:
            return (
                f"The snapshot has {amount(self.plan_bytes)}, but under the root's ceiling {amount(self.room_bytes)} "
                "are left. "
                "Remove a snapshot, or raise the ceiling."
            )
        if self.inodes_free is not None and self.inodes_needed > self.inodes_free:
            return (
                f"The snapshot needs {self.inodes_needed} files and folders, but the file system has inodes for "
                f"{self.inodes_free} more. Remove small files."
            )
        return ""

    @property
    def numbers(self) -> dict[str, int]:
        """As a failure tells them."""
        found = {
            "needed_bytes": self.needed_bytes,
            "free_bytes": self.free_bytes,
            "missing_bytes": self.missing_bytes,
            "reserved_bytes": self.reserved_bytes,
            "reserve_bytes": self.reserve_bytes,
            "snapshot_bytes": self.plan_bytes,
            "inodes_needed": self.inodes_needed,
        }
        if self.room_bytes is not None:
            found["room_bytes"] = self.room_bytes
        if self.inodes_free is not None:
            found["inodes_free"] = self.inodes_free
        return found


def room(
    plan: Plan, *, order: wire.AcquireOrder, root: Path, held_bytes: int = 0, statvfs: Space = os.fstatvfs
) -> Room:
    """Measure now; ``held_bytes`` of the plan lie on this disk already, verified or half done."""
    with places.writing(root, "measuring the room"), Tree(root) as tree:
        space = statvfs(tree.fd)  # of the root itself: what is mounted over it, or linked in its place, has other room
    folders = {file.path[:at] for file in plan.files for at, char in enumerate(file.path) if char == "/"}
    return Room(
        missing_bytes=max(0, plan.bytes - held_bytes),
        reserved_bytes=order.reserved_bytes,
        reserve_bytes=order.reserve_bytes,
        free_bytes=min(space.f_bavail * space.f_frsize, _MOST),
        plan_bytes=plan.bytes,
        room_bytes=order.room_bytes,
        inodes_needed=len(plan.files) + len(folders) + _OWN_NAMES,
        inodes_free=space.f_favail if space.f_files else None,  # btrfs and such make them as they are needed
    )


def check(
    plan: Plan,
    *,
    order: wire.AcquireOrder,
    root: Path,
    held_bytes: int = 0,
    tally: Tally | None = None,
    statvfs: Space = os.fstatvfs,
) -> Room:
    """Measure, and raise ``Failed`` (insufficient_capacity, with the numbers) where the plan does not fit."""
    if tally is not None:
        tally.phase = "guard"
    found = room(plan, order=order, root=root, held_bytes=held_bytes, statvfs=statvfs)
    if found.lacks:
        raise Failed("insufficient_capacity", found.lacks, numbers=found.numbers)
    return found
