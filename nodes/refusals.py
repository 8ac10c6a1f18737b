"""What a refused contact leaves behind: it is noted on the node's row, and told in the history once per reason."""

from datetime import UTC, datetime

from django.db import transaction
from django.db.models import Q

from agent.protocol import SPOKEN, VERSION_HEADER, Code
from nodes import holding
from nodes.callers import NodeCaller, Refused
from nodes.event_types import EventType
from nodes.models import Node

_WHY = {
    Code.NODE_RETIRED: "This node was retired. To use this server again, start an agent with an empty state volume "
    "and a new enrollment token.",
    Code.NODE_DISABLED: "This node is disabled. An operator can enable it on its page; the agent will go on by itself.",
    Code.CREDENTIAL_REVOKED: "This credential was revoked. Enroll this node again with a new enrollment token, or "
    "install a rotated credential with `credential set`.",
    Code.CREDENTIAL_SUPERSEDED: "A newer credential of this node is in use. Install that one with `credential set`.",
}


def forbidden(node: Node) -> Code | None:
    """Why a node, its row locked, may not speak: an operator may have said no since its credential was checked."""
    if node.retired_at is not None:
        return Code.NODE_RETIRED
    return None if node.enabled else Code.NODE_DISABLED


def note(by: NodeCaller, code: Code, *, now: datetime) -> Refused:
    """Note a contact that is refused with ``code``; the refusal to raise, once the note is committed."""
    with transaction.atomic():
        first = Node.objects.filter(~Q(refused_code=code), pk=by.node_id).update(refused_code=code, refused_at=now)
        if first:
            node = Node.objects.get(pk=by.node_id)
            holding.tell(EventType.NODE_REFUSED, by=by, about=node, at=now, code=code)
        else:
            Node.objects.filter(pk=by.node_id).update(refused_at=now)
    return Refused(code, _WHY[code])


def note_again(by: NodeCaller, code: Code, *, now: datetime) -> Refused:
    """Note a contact whose reason was told before, without a word in the history; the refusal to raise."""
    Node.objects.filter(pk=by.node_id, refused_code=code).update(refused_at=now)
    return Refused(code, _WHY[code])


def superseded(since: datetime) -> Refused:
    """The refusal of a process start that another one has taken over from."""
    return Refused(
        Code.IDENTITY_CONFLICT,
        f"Another process speaks with this node's identity since {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC. "
        "Stop one of the two. A copy gets an empty state volume and enrolls as a node of its own; if this is the one "
        "that stays, restart its agent, or clear the conflict on the node's page.",
    )


def note_protocol(by: NodeCaller, header: str | None, *, now: datetime) -> Refused:
    """Note a contact in a protocol that we do not speak; the refusal to raise, once the note is committed."""
    said = "none" if header is None else header[:32] or "empty"
    code = Code.PROTOCOL_UNSUPPORTED
    with transaction.atomic():
        first = Node.objects.filter(~Q(refused_code=code) | ~Q(protocol_refused=said), pk=by.node_id).update(
            refused_code=code, refused_at=now, protocol_refused=said, protocol_refused_at=now
        )
        if first:
            node = Node.objects.get(pk=by.node_id)
            holding.tell(EventType.PROTOCOL_REFUSED, by=by, about=node, at=now, said=said, spoken=list(SPOKEN))
        else:
            Node.objects.filter(pk=by.node_id).update(refused_at=now)
    return protocol_unsupported(header)


def protocol_unsupported(header: str | None) -> Refused:
    """The refusal of a protocol version, with the versions spoken and the remedy."""
    said = "no version" if header is None else f"version {header[:32]!r}"
    spoken = ", ".join(map(str, SPOKEN))
    return Refused(
        Code.PROTOCOL_UNSUPPORTED,
        f"{VERSION_HEADER} says {said}; this control plane speaks {spoken}. "
        "Run an agent of the control plane's release.",
    )
