"""How the pages word ages, spans, instants, sizes, readings and events; pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from nodes.event_types import EventType

DASH = "—"

REASONS = {
    "unsupported": "not supported here",
    "denied": "permission denied",
    "lost": "the device was lost",
    "error": "the read failed",
}

WHY = ("reason", "why", "failure_code", "failure_detail", "fault", "detail")
ABOUT = ("job_type", "repo_id", "commit", "revision", "root", "job", "spent")


def span(length: timedelta) -> str:
    """A length of time in its largest two units at most: "12 s", "4 min", "3 h 20 min", "5 d"."""
    seconds = int(abs(length).total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 24:
        rest = minutes % 60
        return f"{hours} h {rest} min" if hours < 10 and rest else f"{hours} h"
    if days < 60:
        return f"{days} d"
    return f"{days // 30} months" if days < 730 else f"{days // 365} years"


def relative(at: datetime, now: datetime) -> str:
    """An instant as seen from now: "12 s ago", "in 3 min", "just now"."""
    gone = now - at
    if abs(gone) < timedelta(seconds=1):
        return "just now"
    return f"{span(gone)} ago" if gone > timedelta() else f"in {span(gone)}"


def exact(at: datetime) -> str:
    """An instant to the second: "2026-03-01 12:00:05 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(count: float | None) -> str:
    """Bytes in binary units with three figures: "7.45 GiB"."""
    if count is None:
        return DASH
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    if unit == "B":
        return f"{amount:.0f} B"
    return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"


def count(amount: int) -> str:
    """A whole number in groups of three: "16 166 076"."""
    return f"{amount:,}".replace(",", "\N{NO-BREAK SPACE}")


def number(amount: float) -> str:
    """A number without a tail of zeros: 2 or 2.5."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def short(model: str) -> str:
    """A GPU's model without its maker: "H100 80GB HBM3"."""
    return model.removeprefix("NVIDIA ").removeprefix("GeForce ")


def value_of(reading: Any) -> Any:
    """The value of a stored reading, or None."""
    return reading.get("value") if isinstance(reading, Mapping) else None


def why_not(reading: Any) -> str:
    """Why a stored reading holds no value, for the tooltip of its dash."""
    if not isinstance(reading, Mapping):
        return "not reported"
    reason = str(reading.get("reason") or "not reported")
    code = reading.get("code")
    said = REASONS.get(reason, reason)
    return said if code is None else f"{said} (code {code})"


def event_label(type: str) -> str:
    """An event's type in words; one that this release does not know, as it stands."""
    return EventType(type).label if type in EventType.values else type


def event_summary(details: Mapping[str, Any]) -> str:
    """An event's first details, in one line: why before what, and last what it was about."""
    said = []
    for key, value in sorted(details.items(), key=lambda detail: _rank(detail[0])):
        if value in ("", None) or isinstance(value, dict | list) or key.endswith("handle"):
            continue
        said.append(f"{key.removesuffix('_seconds').removesuffix('_bytes').replace('_', ' ')}: {_said(key, value)}")
    return " · ".join(said[:3])


def _rank(key: str) -> int:
    """Where a detail stands; the database keeps an order of its own."""
    return WHY.index(key) if key in WHY else len(WHY) + (1 + ABOUT.index(key) if key in ABOUT else 0)


def _said(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key.endswith("seconds") and isinstance(value, int | float):
        return span(timedelta(seconds=value))
    if key.endswith("bytes") and isinstance(value, int):
        return size(value)
    text = str(value)
    if key.endswith("_at") or key.endswith("since"):
        return text.replace("T", " ").split(".")[0].removesuffix("+00:00")
    return text
