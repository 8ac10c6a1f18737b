"""How much room a storage root has, out of a row that ``artifacts.listed.roots`` gave: no query of its own."""

from dataclasses import dataclass

from artifacts.models import StorageRoot


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of a root; None where its agent has not measured them."""

    total_bytes: int | None
    free_bytes: int | None
    reserve_bytes: int | None
    reserved_bytes: int
    artifact_bytes: int
    ceiling_bytes: int | None
    room_bytes: int | None  # what another job may still bring

    @property
    def used_share(self) -> float | None:
        """How full the file system is, in percent."""
        if not self.total_bytes or self.free_bytes is None:
            return None
        return 100 * (1 - self.free_bytes / self.total_bytes)


def room(root: StorageRoot) -> Room:
    """The room of a listed root."""
    kept: int = getattr(root, "artifact_bytes", 0)
    reserved: int = getattr(root, "reserved_bytes", 0)
    reserve = reserve_bytes(root)
    left = []
    if root.free_bytes is not None and reserve is not None:
        left.append(root.free_bytes - reserve - reserved)
    if left and root.ceiling_bytes is not None:
        left.append(root.ceiling_bytes - kept - reserved)
    return Room(
        total_bytes=root.total_bytes,
        free_bytes=root.free_bytes,
        reserve_bytes=reserve,
        reserved_bytes=reserved,
        artifact_bytes=kept,
        ceiling_bytes=root.ceiling_bytes,
        room_bytes=max(min(left), 0) if left else None,
    )


def reserve_bytes(root: StorageRoot) -> int | None:
    """What is to be left free, in bytes; None for a percentage of a size that nobody measured."""
    if root.reserve_bytes is not None:
        return root.reserve_bytes
    if root.total_bytes is None or root.reserve_percent is None:
        return None
    return int(root.total_bytes * root.reserve_percent / 100)
