"""How much room a storage root has, out of a row that ``artifacts.listed.roots`` gave: no query of its own."""

from datetime import datetime

from artifacts import reserves
from artifacts.capacity import Capacity
from artifacts.models import StorageRoot


def of_listed(root: StorageRoot) -> Capacity:
    """The capacity of a listed root, as ``artifacts.capacity.of`` would tell it."""
    kept: int = root.artifact_bytes  # type: ignore[attr-defined]
    reserved: int = root.reserved_bytes  # type: ignore[attr-defined]
    promised: int = root.promised_bytes  # type: ignore[attr-defined]
    reserve = reserves.in_bytes(root)
    left = [] if root.free_bytes is None or reserve is None else [root.free_bytes - reserve - reserved]
    if root.ceiling_bytes is not None:
        left.append(root.ceiling_bytes - kept - promised)
    return Capacity(
        total_bytes=root.total_bytes,
        free_bytes=root.free_bytes,
        reserve_bytes=reserve,
        reserved_bytes=reserved,
        artifact_bytes=kept,
        ceiling_bytes=root.ceiling_bytes,
        room_bytes=max(min(left), 0) if left else None,
        partial_bytes=root.partial_bytes,
    )


def measured_at(root: StorageRoot) -> datetime | None:
    """When its agent measured the file system: at its last proof, for a fault tells no figures."""
    return root.proven_at or root.looked_at


def used_share(capacity: Capacity) -> float | None:
    """How full the file system is, in percent; None where nobody measured it."""
    if not capacity.total_bytes or capacity.free_bytes is None:
        return None
    return 100 * (1 - capacity.free_bytes / capacity.total_bytes)


def level(share: float | None) -> str:
    """How worrying that is, as a bar's colour."""
    return "neutral" if share is None else "danger" if share >= 95 else "warning" if share >= 85 else "fine"
