"""What an invitation may say, and where it stands: the bounds and states of enrollment tokens."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from agent.wire import FieldError
from enrollment.models import EnrollmentToken
from nodes import labels

DEFAULT_LIFETIME = timedelta(seconds=900)
SHORTEST_LIFETIME = timedelta(seconds=60)
LONGEST_LIFETIME = timedelta(days=7)


class TokenState(StrEnum):
    """Where an invitation stands."""

    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What an operator says about a node that is to come; the flags are metadata and launch nothing."""

    lifetime: timedelta = DEFAULT_LIFETIME
    display_name: str = ""
    role: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    production_eligible: bool = False
    lab_eligible: bool = False
    benchmark_eligible: bool = False


def state_of(token: EnrollmentToken, now: datetime) -> TokenState:
    """Where a token stands at ``now``."""
    if token.revoked_at is not None:
        return TokenState.REVOKED
    if token.used_at is not None:
        return TokenState.USED
    return TokenState.EXPIRED if token.expires_at <= now else TokenState.OPEN


def in_state(state: TokenState, now: datetime) -> Q:
    """The tokens for which ``state_of`` gives ``state``, as a condition."""
    untouched = Q(revoked_at=None, used_at=None)
    return {
        TokenState.REVOKED: Q(revoked_at__isnull=False),
        TokenState.USED: Q(used_at__isnull=False),
        TokenState.EXPIRED: untouched & Q(expires_at__lte=now),
        TokenState.OPEN: untouched & Q(expires_at__gt=now),
    }[state]


def faults(invitation: Invitation) -> list[FieldError]:
    """What is out of bounds, each with its remedy; none for an invitation that may stand."""
    least, most = SHORTEST_LIFETIME.total_seconds(), LONGEST_LIFETIME.total_seconds()
    found = [
        labels.text_fault(invitation.display_name, "display_name", most=255),
        labels.text_fault(invitation.role, "role", most=64),
        *labels.faults(invitation.labels),
    ]
    if not SHORTEST_LIFETIME <= invitation.lifetime <= LONGEST_LIFETIME:
        found.append(FieldError(field="expires_in_seconds", detail=f"Give {least:.0f} to {most:.0f} seconds."))
    return [fault for fault in found if fault is not None]
