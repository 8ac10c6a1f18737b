"""How much of a root's file system is to stay free, and how much models may fill at most: bounds, and bytes."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from agent.wire import FieldError
from artifacts.models import StorageRoot

DEFAULT_PERCENT = 5.0
MOST_PERCENT = 95.0
MOST_BYTES = 2**60

LIMITS = ("reserve_bytes", "reserve_percent", "ceiling_bytes")


def faults(limits: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with the three limits together."""
    count, percent, ceiling = (limits[name] for name in LIMITS)
    if count is not None and not _whole(count, least=0):
        yield FieldError(field="reserve_bytes", detail=f"Give whole bytes from 0 to {MOST_BYTES}.")
    if percent is not None and not _share(percent):
        yield FieldError(field="reserve_percent", detail=f"Give a number from 0 to {MOST_PERCENT:g}.")
    if (count is None) == (percent is None):
        detail = "Give a reserve in bytes or in percent, one of the two."
        yield FieldError(field="reserve_bytes" if count is None else "reserve_percent", detail=detail)
    if ceiling is not None and not _whole(ceiling, least=1):
        yield FieldError(field="ceiling_bytes", detail=f"Give whole bytes from 1 to {MOST_BYTES}, or none at all.")


def merged(root: StorageRoot, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The limits as they will stand: a new reserve of one kind takes the place of the other kind."""
    limits = {name: changes.get(name, getattr(root, name)) for name in LIMITS}
    for name, other in (("reserve_bytes", "reserve_percent"), ("reserve_percent", "reserve_bytes")):
        if changes.get(name) is not None and changes.get(other) is None:
            limits[other] = None
    return limits


def in_bytes(root: StorageRoot) -> int | None:
    """What is to be left free, in bytes; None for a percentage of a size that nobody measured."""
    if root.reserve_bytes is not None:
        return root.reserve_bytes
    if root.reserve_percent is None or root.total_bytes is None:
        return None
    return math.ceil(root.total_bytes * root.reserve_percent / 100)


def _whole(value: Any, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_BYTES


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_PERCENT
