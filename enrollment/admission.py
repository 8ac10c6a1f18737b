"""Inviting a node and letting it in: validate first, consume last, and heal a lost reply (docs/decisions.md)."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from agent.protocol import VERSION, Code
from agent.wire import Enroll, Enrolled, FieldError
from enrollment import credentials, secrets
from enrollment.invitations import Invitation, TokenState, faults, state_of
from enrollment.models import EnrollmentToken, NodeCredential
from nodes import continuity, labels
from nodes.audit import Subject, record
from nodes.callers import Caller, Refused, Role, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import CredentialState, Heartbeat, Node

__all__ = ["Invitation", "admit", "invite", "revoke", "subject"]


def invite(invitation: Invitation, *, by: Caller, now: datetime) -> tuple[EnrollmentToken, str]:
    """Make a one-time token for one node; its text is told once.

    Raises:
        Refused: ``invalid``, naming each field out of bounds; ``forbidden``.
    """
    require_operator(by)
    _check(faults(invitation))
    minted = secrets.mint(secrets.Kind.ENROLLMENT)
    said = {name: value for name, value in asdict(invitation).items() if name != "lifetime"}
    said |= {"display_name": invitation.display_name.strip(), "role": invitation.role.strip()}
    with transaction.atomic():
        token = EnrollmentToken.objects.create(
            created_at=now,
            created_by=by.label[:255],
            expires_at=now + invitation.lifetime,
            handle=minted.handle,
            digest=minted.digest,
            last_four=minted.last_four,
            **said,
        )
        details = {"handle": token.handle, "last_four": token.last_four, "expires_at": token.expires_at}
        record(EventType.TOKEN_CREATED, by=by, about=subject(token), at=now, **details, **said)
    return token, minted.text


def revoke(token: EnrollmentToken, *, by: Caller, now: datetime, reason: str = "") -> EnrollmentToken:
    """Take an invitation back; one that was taken back already stays so.

    Raises:
        Refused: ``state_conflict`` for a used one; ``forbidden``.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        token = EnrollmentToken.objects.select_for_update().get(pk=token.pk)
        if token.used_at is not None:
            detail = "This token was used. Revoke the node's credential instead."
            raise Refused(Code.STATE_CONFLICT, detail)
        if token.revoked_at is None:
            token.revoked_at = now
            token.save(update_fields=["revoked_at"])
            details = {"handle": token.handle, "last_four": token.last_four, "reason": why}
            record(EventType.TOKEN_REVOKED, by=by, about=subject(token), at=now, **details)
    return token


def admit(message: Enroll, token_text: str, *, address: str, request_id: str, now: datetime) -> Enrolled:
    """Let a node in for its token, or heal a reply that was lost.

    Raises:
        Refused: ``token_unknown``; to the holder of the whole token ``token_used``, ``token_expired``,
            ``token_revoked``, ``node_has_credential`` or ``node_retired``; ``invalid``. Nothing is consumed then.
    """
    handle = prove(token_text)
    _check(_faults_of(message))
    try:
        return _admit(message, handle, address=address, request_id=request_id, now=now)
    except (IntegrityError, _Appeared):  # the same new node id came in twice at once; now its row is there to lock
        return _admit(message, handle, address=address, request_id=request_id, now=now)


def prove(token_text: str) -> str:
    """The handle of a token that we issued, whatever its state; without any lock, so that a stranger holds up nobody.

    Raises:
        Refused: ``token_unknown``.
    """
    parsed = secrets.parse(token_text, secrets.Kind.ENROLLMENT)
    if parsed is None:
        raise Refused(Code.TOKEN_UNKNOWN, secrets.fault(token_text, secrets.Kind.ENROLLMENT))
    digest = EnrollmentToken.objects.filter(handle=parsed.handle).values_list("digest", flat=True).first()
    if digest is None or not secrets.matches(digest, parsed.digest):
        raise Refused(Code.TOKEN_UNKNOWN, "This enrollment token is not known here. Ask the operator for a new one.")
    return parsed.handle


class _Appeared(Exception):
    """The node's row was not there when it should have been locked, and is there now."""


def _admit(message: Enroll, handle: str, *, address: str, request_id: str, now: datetime) -> Enrolled:
    with transaction.atomic():
        node = Node.objects.select_for_update().filter(pk=message.node_id).first()
        token = EnrollmentToken.objects.select_for_update().get(handle=handle)
        if node is None and token.node_id == message.node_id:
            raise _Appeared
        healing = _validate(token, node, now)
        by = _arriving(message, token, node, address=address, request_id=request_id)
        revised: dict[str, Any] | None = None
        if node is None:
            node = _settle(message, token, by, now)
        elif not healing:
            revised = _resettle(node, token, now)
        if not healing:
            used = EnrollmentToken.objects.filter(pk=token.pk, used_at=None, revoked_at=None)
            if used.update(used_at=now, node=node) != 1:
                raise RuntimeError(f"token {token.handle} was consumed though it is locked")
            told = {"token_handle": token.handle, "token_last_four": token.last_four, "hostname": message.hostname}
            if revised is None:
                record(EventType.NODE_ENROLLED, by=by, about=node, at=now, **told)
            else:
                record(EventType.NODE_REENROLLED, by=by, about=node, at=now, **told, revised=revised)
        _, text = credentials.give(
            node,
            origin=NodeCredential.Origin.ENROLLMENT,
            token=token,
            by=by,
            now=now,
            reason="the reply before was lost" if healing else "",
        )
        return Enrolled(
            node_id=node.pk,
            credential=text,
            display_name=node.display_name,
            heartbeat_interval_seconds=continuity.granted_interval(now).total_seconds(),
        )


def _validate(token: EnrollmentToken, node: Node | None, now: datetime) -> bool:
    """Whether this is a lost reply's healing; False for a first use. Both rows are locked."""
    state = state_of(token, now)
    if state is TokenState.REVOKED:
        raise Refused(Code.TOKEN_REVOKED, "This enrollment token was revoked. Ask the operator for a new one.")
    if state is TokenState.EXPIRED:
        raise Refused(Code.TOKEN_EXPIRED, "This enrollment token has expired. Ask the operator for a new one.")
    if state is TokenState.USED and not _heals(token, node, now):
        raise Refused(
            Code.TOKEN_USED,
            "This enrollment token was used. Ask the operator for a new one; for a node that is known already, the "
            "operator revokes its credential first.",
        )
    if node is not None and node.retired_at is not None:
        raise Refused(
            Code.NODE_RETIRED, "This node was retired. To use this server again, start with an empty state volume."
        )
    in_use = NodeCredential.objects.filter(node=node, state=NodeCredential.State.ACTIVE)
    if node is not None and in_use.exists():
        raise Refused(
            Code.NODE_HAS_CREDENTIAL,
            "This node holds a credential that is in use. Revoke it first; this enrollment token is not spent.",
        )
    return state is TokenState.USED


def _heals(token: EnrollmentToken, node: Node | None, now: datetime) -> bool:
    """Whether the node that used this token has never used what it got for it, and the token would still be good."""
    if node is None or token.node_id != node.pk or token.expires_at <= now:
        return False
    pending = NodeCredential.objects.filter(node=node, token=token, state=NodeCredential.State.PENDING)
    in_use = NodeCredential.objects.filter(node=node, state=NodeCredential.State.ACTIVE)
    return pending.exists() and not in_use.exists()


def _settle(message: Enroll, token: EnrollmentToken, by: Caller, now: datetime) -> Node:
    """A node that was never seen before."""
    node = Node.objects.create(
        id=message.node_id,
        display_name=by.label,
        hostname=message.hostname,
        role=token.role,
        labels=token.labels,
        production_eligible=token.production_eligible,
        lab_eligible=token.lab_eligible,
        benchmark_eligible=token.benchmark_eligible,
        agent_version=message.agent_version,
        protocol_version=VERSION,
        address=by.address,
        enrolled_at=now,
        updated_at=now,
    )
    Heartbeat.objects.create(node=node)
    return node


def _resettle(node: Node, token: EnrollmentToken, now: datetime) -> dict[str, Any]:
    """A known node comes back: the new invitation's names where it gives some, and always its flags; what changed."""
    wanted: dict[str, Any] = {
        name: value for name in ("display_name", "role", "labels") if (value := getattr(token, name))
    }
    for flag in ("production_eligible", "lab_eligible", "benchmark_eligible"):
        wanted[flag] = getattr(token, flag)
    changed = {name: value for name, value in wanted.items() if getattr(node, name) != value}
    revised = {name: {"old": getattr(node, name), "new": value} for name, value in changed.items()}
    for name, value in changed.items():
        setattr(node, name, value)
    if changed:
        node.version += 1
        node.updated_at = now
    node.credential_state = CredentialState.ACTIVE
    node.rotation_ends_at = None
    node.save(update_fields=[*changed, "version", "updated_at", "credential_state", "rotation_ends_at"])
    return revised


def subject(token: EnrollmentToken) -> Subject:
    """A token as the history names it."""
    return Subject("enrollment_token", str(token.pk), str(token))


def _arriving(message: Enroll, token: EnrollmentToken, node: Node | None, *, address: str, request_id: str) -> Caller:
    said = token.display_name or (node.display_name if node else "") or message.display_name.strip()
    label = said or message.hostname.strip() or str(message.node_id)
    return Caller(
        kind="node", role=Role.NODE, id=str(message.node_id), label=label, address=address, request_id=request_id
    )


def _check(found: list[FieldError]) -> None:
    if found:
        raise Refused(Code.INVALID, "; ".join(f"{fault.field}: {fault.detail}" for fault in found), errors=found)


def _faults_of(message: Enroll) -> list[FieldError]:
    found = [
        labels.text_fault(message.hostname, "hostname", least=1, most=255),
        labels.text_fault(message.display_name, "display_name", most=255),
        labels.text_fault(message.agent_version, "agent_version", least=1, most=64),
    ]
    return [fault for fault in found if fault is not None]
