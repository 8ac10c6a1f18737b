"""Makes readings for the wire out of what systems answer: cleaned, inside the wire's bounds, or the reason why not."""

import errno
import math
from typing import Any

from agent.wire import Reading, Reason

_LARGEST_COUNT = 2**53
_LARGEST_BYTES = 2**63 - 1
_LARGEST_NUMBER = 1e15

UNSUPPORTED: Reading[Any] = Reading(reason="unsupported")

_BY_ERRNO: dict[int, Reason] = {
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.ENOSYS: "unsupported",
    errno.EOPNOTSUPP: "unsupported",
}


def text(raw: str | bytes, limit: int = 255) -> str:
    """One clean line: undecodable bytes replaced, control characters and outer blanks dropped, clipped to the limit."""
    decoded = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw.encode("utf-8", "replace").decode()
    return "".join(c for c in decoded if c.isprintable()).strip()[:limit]


def said(raw: str | bytes) -> Reading[str]:
    """A text; an empty one says nothing."""
    cleaned = text(raw)
    return Reading(value=cleaned) if cleaned else UNSUPPORTED


def count(raw: int) -> Reading[int]:
    """A whole number of things."""
    return Reading(value=raw) if 0 <= raw <= _LARGEST_COUNT else Reading(reason="error")


def amount(count: int) -> str:
    """A number of bytes as people read it: 4.547 TiB."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.4g} {units[0]}"


def size(raw: int) -> Reading[int]:
    """An amount of bytes."""
    return Reading(value=raw) if 0 <= raw <= _LARGEST_BYTES else Reading(reason="error")


def number(raw: float) -> Reading[float]:
    """A measure; always a float, so that both ends of the wire write it the same way."""
    value = float(raw)
    return Reading(value=value) if math.isfinite(value) and abs(value) <= _LARGEST_NUMBER else Reading(reason="error")


def refused(error: OSError) -> Reading[Any]:
    """The reason behind a failed system call, with its errno."""
    code = error.errno
    return Reading(reason="error" if code is None else _BY_ERRNO.get(code, "error"), code=code)


def overdue() -> Reading[Any]:
    """A system call that has not come back."""
    return Reading(reason="error", code=errno.ETIMEDOUT)
