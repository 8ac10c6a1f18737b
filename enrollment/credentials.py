"""Node credentials: issued once, rotated with an overlap, renewed by their node, revoked at once.

The arrows of ``NodeCredential``'s automaton are here and nowhere else. Each is a conditional update under the lock on
the node's row, which orders everybody who changes the node's credentials.
"""

from datetime import datetime, timedelta

from django.db import transaction

from agent.protocol import Code
from agent.wire import FieldError
from enrollment import secrets
from enrollment.models import EnrollmentToken, NodeCredential
from nodes import holding
from nodes.audit import record
from nodes.callers import Caller, NodeCaller, Refused, require_operator
from nodes.control import reason_of
from nodes.event_types import EventType
from nodes.models import CredentialState, Node

DEFAULT_OVERLAP = timedelta(days=1)
LONGEST_OVERLAP = timedelta(days=30)
RENEWAL_OVERLAP = timedelta(days=1)
RENEWAL_PAUSE = timedelta(seconds=10)  # between two renewals of one node, each of which is told in the history

State = NodeCredential.State
Origin = NodeCredential.Origin

_EVENT = {
    Origin.ENROLLMENT: EventType.CREDENTIAL_ISSUED,
    Origin.ROTATION: EventType.CREDENTIAL_ROTATED,
    Origin.RENEWAL: EventType.CREDENTIAL_RENEWED,
}


def give(
    node: Node,
    *,
    origin: NodeCredential.Origin,
    token: EnrollmentToken | None,
    by: Caller,
    now: datetime,
    reason: str = "",
    old_dies_at: datetime | None = None,
) -> tuple[NodeCredential, str]:
    """Issue a credential to a node whose row the caller has locked; an unused one before it dies.

    Returns:
        The credential, pending until its first use, and its text, which is told once.
    """
    replaced = NodeCredential.objects.filter(node=node, state=State.PENDING).first()
    _end(node, State.PENDING, State.SUPERSEDED, "replaced before its first use", now)
    minted = secrets.mint(secrets.Kind.NODE)
    credential = NodeCredential.objects.create(
        node=node,
        origin=origin,
        token=token,
        issued_at=now,
        issued_by=by.label[:255],
        handle=minted.handle,
        digest=minted.digest,
        last_four=minted.last_four,
    )
    details: dict[str, object] = {"handle": minted.handle, "last_four": minted.last_four, "origin": origin.value}
    if replaced is not None:
        details["replaces_unused"] = replaced.handle
    if old_dies_at is not None:
        details["old_dies_at"] = old_dies_at
    if reason:
        details["reason"] = reason
    record(_EVENT[origin], by=by, about=node, at=now, **details)
    return credential, minted.text


def rotate(
    node: Node, *, overlap: timedelta, by: Caller, now: datetime, reason: str = ""
) -> tuple[NodeCredential, str]:
    """Issue a new credential; the old one dies when the new one is first used, at the latest after ``overlap``.

    A rotation before the new one's first use replaces it, and sets the old one's deadline anew. A node whose credential
    was revoked comes back this way when the new one is installed by hand.

    Raises:
        Refused: ``invalid`` overlap; ``node_retired``; ``forbidden``.
    """
    require_operator(by)
    if not timedelta() <= overlap <= LONGEST_OVERLAP:
        most = int(LONGEST_OVERLAP.total_seconds())
        error = FieldError(field="overlap_seconds", detail=f"Give 0 (the old credential dies now) to {most} seconds.")
        raise Refused(Code.INVALID, f"{error.field}: {error.detail}", errors=[error])
    why = reason_of(reason, required=False)
    with transaction.atomic():
        node = _locked(node)
        if node.retired_at is not None:
            raise Refused(Code.NODE_RETIRED, "A retired node gets no credential.")
        old = _limit_old(node, now + overlap, now)
        return give(node, origin=Origin.ROTATION, token=None, by=by, now=now, reason=why, old_dies_at=old)


def renew(*, by: NodeCaller, now: datetime) -> tuple[NodeCredential, str]:
    """Issue a new credential to a node that asks for it, as ``rotate`` does, with an overlap of a day.

    A node cannot put off the end that a rotation has set to its old credential.

    Returns:
        The credential and its text; its ``node.rotation_ends_at`` says when the one that the node asked with dies.

    Raises:
        Refused: ``credential_superseded`` or ``credential_revoked``, when that happened since the request came in;
            ``throttled`` within ten seconds of the renewal before, or where the node told too much of late.
    """
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=by.node_id)
        speaking = NodeCredential.objects.get(pk=by.credential_id)
        if speaking.state != State.ACTIVE or _dead(speaking.dies_at, now):
            raise _ended(State(speaking.state))
        unused = NodeCredential.objects.filter(
            node=node, state=State.PENDING, origin=Origin.RENEWAL, issued_at__gt=now - RENEWAL_PAUSE
        ).first()
        if unused is not None:
            after = unused.issued_at + RENEWAL_PAUSE - now
            raise Refused(Code.THROTTLED, "A new credential was issued just now; use that one.", retry_after=after)
        held = holding.refuse(node, by=by, now=now)
        if held is None:
            limit = min(speaking.dies_at or now + RENEWAL_OVERLAP, now + RENEWAL_OVERLAP)
            old = _limit_old(node, limit, now)
            return give(node, origin=Origin.RENEWAL, token=None, by=by, now=now, old_dies_at=old)
    raise held


def first_use(*, by: NodeCaller, now: datetime) -> NodeCredential.State:
    """A new credential proves that it arrived: it becomes the active one, and the old one dies.

    Returns:
        Where the credential stands now; not active when it was replaced or revoked in the same instant.
    """
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=by.node_id)
        new = NodeCredential.objects.select_for_update().get(pk=by.credential_id)
        if new.state != State.PENDING:
            return State(new.state)
        old = NodeCredential.objects.filter(node=node, state=State.ACTIVE).first()
        _end(node, State.ACTIVE, State.SUPERSEDED, "the next credential was used", now)
        moved = NodeCredential.objects.filter(pk=new.pk, state=State.PENDING).update(
            state=State.ACTIVE, first_used_at=now
        )
        _arrow(moved, f"credential {new.handle} is pending")
        _stands(node, CredentialState.ACTIVE)
        details = {"handle": new.handle, "last_four": new.last_four}
        if old is not None:
            details["supersedes"] = old.handle
        record(EventType.CREDENTIAL_FIRST_USED, by=by, about=node, at=now, **details)
    return State.ACTIVE


def revoke(node: Node, *, reason: str, by: Caller, now: datetime) -> int:
    """Revoke every credential of a node at once, used or not; how many were revoked.

    0 when none was left: a repeated revocation is no fault and no event.
    """
    require_operator(by)
    why = reason_of(reason, required=False)
    with transaction.atomic():
        node = _locked(node)
        live = NodeCredential.objects.filter(node=node, state__in=[State.PENDING, State.ACTIVE])
        handles = sorted(live.values_list("handle", flat=True))
        revoked = live.update(state=State.REVOKED, ended_at=now, end_reason=why or "revoked", dies_at=None)
        if revoked:
            _stands(node, CredentialState.REVOKED)
            record(EventType.CREDENTIAL_REVOKED, by=by, about=node, at=now, handles=handles, reason=why)
    return revoked


def is_over(state: NodeCredential.State, dies_at: datetime | None, now: datetime) -> bool:
    """Whether a credential is superseded at ``now``, though nobody has written it down yet."""
    return state is State.SUPERSEDED or (state is State.ACTIVE and _dead(dies_at, now))


def _limit_old(node: Node, dies_at: datetime, now: datetime) -> datetime | None:
    """Date the active credential's end and the node's rotation; None where there is none that still works."""
    active = NodeCredential.objects.filter(node=node, state=State.ACTIVE).first()
    if active is not None and (dies_at <= now or _dead(active.dies_at, now)):
        ended = min(active.dies_at or now, now)
        _end(node, State.ACTIVE, State.SUPERSEDED, "the overlap of its rotation is over", ended)
        active = None
    if active is None:
        _stands(node, CredentialState.ACTIVE)
        return None
    moved = NodeCredential.objects.filter(pk=active.pk, state=State.ACTIVE).update(dies_at=dies_at)
    _arrow(moved, f"credential {active.handle} is active")
    _stands(node, CredentialState.ROTATING, until=dies_at)
    return dies_at


def _stands(node: Node, state: CredentialState, until: datetime | None = None) -> None:
    node.credential_state = state
    node.rotation_ends_at = until
    node.save(update_fields=["credential_state", "rotation_ends_at"])


def _end(node: Node, was: NodeCredential.State, to: NodeCredential.State, why: str, at: datetime) -> None:
    NodeCredential.objects.filter(node=node, state=was).update(state=to, ended_at=at, end_reason=why)


def _arrow(moved: int, premise: str) -> None:
    if moved != 1:
        raise RuntimeError(f"{premise} no more, though its node is locked")


def _locked(node: Node) -> Node:
    return Node.objects.select_for_update().get(pk=node.pk)


def _dead(dies_at: datetime | None, now: datetime) -> bool:
    return dies_at is not None and dies_at <= now


def _ended(state: NodeCredential.State) -> Refused:
    if state is State.REVOKED:
        return Refused(Code.CREDENTIAL_REVOKED, "This credential was revoked; enroll this node again.")
    return Refused(Code.CREDENTIAL_SUPERSEDED, "A newer credential of this node is in use; install that one.")
