"""Who speaks, what they may do, and how they are refused."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agent.protocol import Code
from agent.wire import FieldError
from nodes.liveness import Liveness

if TYPE_CHECKING:  # importing it loads the authentication that settings name, which imports this module
    from rest_framework.views import APIView

OPERATORS = "Operators"
AUDITORS = "Auditors"


class Role(StrEnum):
    """What a caller may do: operators act, auditors read, nodes speak for themselves, the system keeps time."""

    OPERATOR = "operator"
    AUDITOR = "auditor"
    NODE = "node"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who speaks; frozen into each row of the history."""

    kind: str  # "person", "admin_token", "api_key", "node" or "system"
    role: Role
    id: str
    label: str
    address: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCaller(Caller):
    """A node that proved its credential, with what the one query that found it saw of its row and its last beat."""

    node_id: UUID
    credential_id: UUID
    enabled: bool
    retired: bool
    protocol_refused: bool
    refused: bool  # its last contact was refused
    renew_credential: bool
    want_facts: bool
    work_waits: bool
    facts_digest: str
    liveness: Liveness
    boot_id: UUID | None
    sequence: int
    stale_at: datetime | None
    interval_seconds: float


SYSTEM = Caller(kind="system", role=Role.SYSTEM, id="system", label="control plane")


@dataclass(slots=True)
class Refused(Exception):
    """A refusal with a stable code; ``modelforge.errors`` turns it into problem+json with its HTTP status."""

    code: Code
    detail: str
    errors: Sequence[FieldError] = ()
    retry_after: timedelta | None = None
    about: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


def address_of(request: HttpRequest | Request) -> str:
    """The peer's address; behind a trusted proxy, a middleware has already put the client's there."""
    return str(request.META.get("REMOTE_ADDR", ""))


def caller_of(request: Request) -> Caller:
    """The caller of an authenticated REST request, whichever way it came in.

    Raises:
        Refused: ``unauthenticated`` for nobody; ``forbidden`` for a person in neither group.
    """
    if isinstance(request.auth, Caller):
        return request.auth
    return person(request)


def person(request: Request | HttpRequest) -> Caller:
    """The caller behind a logged-in session: superusers and members of Operators act, Auditors read."""
    user = request.user
    if not user.is_authenticated or not user.is_active:
        raise Refused(Code.UNAUTHENTICATED, "Log in, or send X-ModelForge-Admin-Token.")
    groups = set(user.groups.values_list("name", flat=True))
    if user.is_superuser or OPERATORS in groups:
        role = Role.OPERATOR
    elif AUDITORS in groups:
        role = Role.AUDITOR
    else:
        raise Refused(Code.FORBIDDEN, "This account is in neither of the groups Operators and Auditors.")
    return Caller(
        kind="person",
        role=role,
        id=str(user.pk),
        label=user.get_username(),
        address=address_of(request),
        request_id=getattr(request, "request_id", ""),
    )


def require_operator(by: Caller) -> None:
    """Acts of operators ask here, whichever door the caller came through.

    Raises:
        Refused: ``forbidden`` for auditors and nodes.
    """
    if by.role not in {Role.OPERATOR, Role.SYSTEM}:
        raise Refused(Code.FORBIDDEN, "Only an operator may do this.")


def _role_of(request: Request) -> Role | None:
    if isinstance(request.auth, Caller):
        return request.auth.role
    if not request.user or not request.user.is_authenticated:
        return None
    try:
        return person(request).role
    except Refused:
        return None


class IsOperator(BasePermission):
    """Operators only: whoever changes something."""

    message = "Only an operator may do this."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """True for the admin token, an operator's key, or a person in Operators."""
        return _role_of(request) is Role.OPERATOR


class IsReader(BasePermission):
    """Operators and auditors: whoever reads."""

    message = "Only an operator or an auditor may read this."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """True for operators and auditors."""
        return _role_of(request) in {Role.OPERATOR, Role.AUDITOR}
