"""Who speaks: nodes by their credential, in one query; scripts by the admin token or a named API key."""

import hmac
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from agent.protocol import Code
from enrollment import attempts, credentials, secrets
from enrollment.models import ApiKey, NodeCredential
from nodes import refusals, statements
from nodes.callers import Caller, NodeCaller, Refused, Role, address_of
from nodes.liveness import Liveness

ADMIN_TOKEN_HEADER = "X-ModelForge-Admin-Token"  # noqa: S105
USE_NOTED_EVERY = timedelta(minutes=1)

_ADMIN_META = "HTTP_" + ADMIN_TOKEN_HEADER.upper().replace("-", "_")
_BEARER = "bearer "

_FIND = """
    SELECT c.id, c.digest, c.state, c.issued_at, c.dies_at,
           n.id, n.display_name, n.enabled, n.retired_at, n.protocol_refused, n.refused_code, n.want_facts,
           n.facts_digest, n.work_waits,
           h.liveness, h.boot_id, h.sequence, h.stale_at, h.interval_seconds
      FROM enrollment_nodecredential c
      JOIN nodes_node n ON n.id = c.node_id
      JOIN nodes_heartbeat h ON h.node_id = n.id
     WHERE c.handle = %s
"""
"""The one query of a beat: the credential, and all that the beat needs to know of its node."""


def bearer(request: HttpRequest | Request) -> str:
    """The secret of ``Authorization: Bearer``.

    Raises:
        Refused: ``unauthenticated`` where there is none.
    """
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if header[: len(_BEARER)].lower() != _BEARER:
        raise Refused(
            Code.UNAUTHENTICATED,
            "No Authorization: Bearer arrived. If the agent sends one, a proxy between takes it away.",
        )
    return str(header[len(_BEARER) :]).strip()


class NodeAuthentication:
    """Named in ``settings.NODE_AUTHENTICATION``; agent views ask it who speaks."""

    def identify(self, request: HttpRequest, now: datetime) -> NodeCaller:
        """The node whose credential came with the request, retired and disabled ones too.

        Raises:
            Refused: ``unauthenticated``, ``credential_unknown``, ``credential_revoked``, ``credential_superseded``, or
                ``throttled`` for an address that guesses.
        """
        text = bearer(request)
        parsed = secrets.parse(text, secrets.Kind.NODE)
        if parsed is None:
            raise _unknown(request, secrets.fault(text, secrets.Kind.NODE), "malformed", now)
        row = statements.row(_FIND, (parsed.handle,))
        if row is None or not secrets.matches(row[1], parsed.digest):
            detail = "This node credential is not known here. Is this the control plane that the node enrolled with?"
            raise _unknown(request, detail, parsed.handle, now)
        issued_at, dies_at = _instant(row[3]), _instant(row[4])
        node_id = _uuid(row[5])
        by = NodeCaller(
            kind="node",
            role=Role.NODE,
            id=str(node_id),
            label=row[6],
            address=address_of(request),
            request_id=getattr(request, "request_id", ""),
            node_id=node_id,
            credential_id=_uuid(row[0]),
            enabled=bool(row[7]),
            retired=row[8] is not None,
            protocol_refused=bool(row[9]),
            refused=bool(row[10]),
            want_facts=bool(row[11]),
            facts_digest=row[12],
            work_waits=bool(row[13]),
            liveness=Liveness(row[14]),
            boot_id=None if row[15] is None else _uuid(row[15]),
            sequence=row[16],
            stale_at=_instant(row[17]),
            interval_seconds=row[18],
            renew_credential=issued_at is not None and now - issued_at > settings.CREDENTIAL_MAX_AGE * 2 / 3,
        )
        if row[2] != "active" or dies_at is not None:
            _check(by, NodeCredential.State(row[2]), dies_at, now)
        return by


def _check(by: NodeCaller, state: NodeCredential.State, dies_at: datetime | None, now: datetime) -> None:
    """What is not the common path: a first use, or a credential that is over. A retired node hears of that alone."""
    if by.retired:
        return
    if state is NodeCredential.State.PENDING:
        state = credentials.first_use(by=by, now=now)
    if state is NodeCredential.State.REVOKED:
        raise _over(by, Code.CREDENTIAL_REVOKED, now)
    if credentials.is_over(state, dies_at, now):
        raise _over(by, Code.CREDENTIAL_SUPERSEDED, now)


def _over(by: NodeCaller, code: Code, now: datetime) -> Refused:
    """Told once per credential: else an old copy that beats beside the healthy agent would fill the history."""
    first = NodeCredential.objects.filter(pk=by.credential_id, refusal_told_at=None).update(refusal_told_at=now)
    return (refusals.note if first else refusals.note_again)(by, code, now=now)


def _unknown(request: HttpRequest | Request, detail: str, handle: str, now: datetime) -> Refused:
    refused = Refused(Code.CREDENTIAL_UNKNOWN, detail)
    return attempts.failed("stranger", refused, address=address_of(request), handle=handle, now=now)


def _uuid(value: UUID | str) -> UUID:
    """SQLite keeps a UUID as its hex digits."""
    return value if isinstance(value, UUID) else UUID(hex=value)


def _instant(value: datetime | None) -> datetime | None:
    """SQLite keeps an instant as UTC without saying so."""
    return value if value is None or value.tzinfo is not None else value.replace(tzinfo=UTC)


class Machine(AnonymousUser):
    """The user of a request that a script makes: nobody's account, yet proven."""

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        """True: ``request.auth`` says who it is."""
        return True

    @property
    def is_anonymous(self) -> bool:  # type: ignore[override]
        """False."""
        return False


class AdminTokenAuthentication(BaseAuthentication):
    """``X-ModelForge-Admin-Token``: ``MODELFORGE_OPERATOR_API_KEY``, or a named API key with its role."""

    def authenticate(self, request: Request) -> tuple[Machine, Caller] | None:
        """The caller that the header proves; None without it.

        Raises:
            Refused: ``credential_unknown``; to a whole key's holder ``api_key_revoked`` or ``api_key_expired``.
        """
        text = request.META.get(_ADMIN_META)
        if text is None:
            return None
        key = settings.OPERATOR_API_KEY
        if key and hmac.compare_digest(text.encode("latin-1", "replace"), key.encode()):  # WSGI hands on bytes so
            return Machine(), _script(request, "admin_token", Role.OPERATOR, "admin-token", "admin token")
        found = _key(request, text, datetime.now(UTC))
        return Machine(), _script(request, "api_key", Role(found.role), str(found.pk), found.name)

    def authenticate_header(self, request: Request) -> str:
        """What to send, so that a refusal is 401 and no 403."""
        return f'{ADMIN_TOKEN_HEADER} realm="modelforge"'


def _script(request: Request, kind: str, role: Role, id: str, label: str) -> Caller:
    request_id = getattr(request, "request_id", "")
    return Caller(kind=kind, role=role, id=id, label=label, address=address_of(request), request_id=request_id)


def _key(request: Request, text: str, now: datetime) -> ApiKey:
    """The live key that ``text`` is; its use is noted, to the minute."""
    parsed = secrets.parse(text, secrets.Kind.API_KEY)
    found = ApiKey.objects.filter(handle=parsed.handle).first() if parsed else None
    if parsed is None or found is None or not secrets.matches(found.digest, parsed.digest):
        detail = f"{ADMIN_TOKEN_HEADER} holds neither the admin token nor a known API key."
        raise _unknown(request, detail, parsed.handle if parsed else "malformed", now)
    if found.revoked_at is not None:
        raise Refused(Code.API_KEY_REVOKED, f"The API key {found.name!r} was revoked. Ask an operator for a new one.")
    if found.expires_at is not None and found.expires_at <= now:
        raise Refused(Code.API_KEY_EXPIRED, f"The API key {found.name!r} has expired. Ask an operator for a new one.")
    before = now - USE_NOTED_EVERY
    if found.last_used_at is None or found.last_used_at <= before:
        unnoted = Q(last_used_at=None) | Q(last_used_at__lte=before)
        ApiKey.objects.filter(unnoted, pk=found.pk).update(last_used_at=now)
    return found


class AdminTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema tells of the admin token."""

    target_class = AdminTokenAuthentication
    name = "adminToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """The header, and what goes into it."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": ADMIN_TOKEN_HEADER,
            "description": "The control plane's MODELFORGE_OPERATOR_API_KEY, or a named API key (mfk_...).",
        }


class NodeCredentialScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema tells of a node's credential, on a view that names ``NodeAuthentication``."""

    target_class = NodeAuthentication
    name = "nodeCredential"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """A bearer token."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The credential that enrollment answered (mfn_...).",
        }
