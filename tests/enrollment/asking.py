"""How the tests speak to the doors of trust: as an agent, and as whoever holds a credential."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client, RequestFactory

from agent import protocol, wire
from agent.protocol import Code
from enrollment import admission
from enrollment.auth import NodeAuthentication
from enrollment.models import EnrollmentToken, NodeCredential
from nodes.audit import events
from nodes.callers import Caller, NodeCaller, Refused
from nodes.models import Node

SECOND = timedelta(seconds=1)
ADDRESS = "192.0.2.10"


def enroll(node_id: UUID | None = None, **said: Any) -> wire.Enroll:
    """What an agent says to be let in."""
    words = {"hostname": "server01", "agent_version": "0.1.0"} | said
    return wire.Enroll(node_id=node_id or uuid4(), boot_id=uuid4(), **words)


def invited(by: Caller, now: datetime, **said: Any) -> tuple[EnrollmentToken, str]:
    """A new enrollment token."""
    return admission.invite(admission.Invitation(**said), by=by, now=now)


def admit(token: str, now: datetime, message: wire.Enroll | None = None) -> wire.Enrolled:
    """An agent asks to be let in."""
    return admission.admit(message or enroll(), token, address=ADDRESS, request_id="request-1", now=now)


def identify(credential: str, now: datetime) -> NodeCaller:
    """The node that holds the credential, as an agent endpoint finds it."""
    request = RequestFactory().post("/", headers={"Authorization": f"Bearer {credential}"}, REMOTE_ADDR=ADDRESS)
    return NodeAuthentication().identify(request, now)


@contextmanager
def refused(code: Code) -> Iterator[pytest.ExceptionInfo[Refused]]:
    """What is inside is refused with this code."""
    with pytest.raises(Refused) as caught:
        yield caught
    assert caught.value.code is code


def told(node_id: UUID | None = None) -> list[str]:
    """The types of events, oldest first; of one node, where it is named."""
    found = events().order_by("position")
    return [event.type for event in (found.filter(node_id=node_id) if node_id else found)]


def states(node: Node | UUID) -> list[str]:
    """Where the node's credentials stand, oldest first."""
    found = NodeCredential.objects.filter(node=node).order_by("issued_at", "handle")
    return list(found.values_list("state", flat=True))


def post(client: Client, path: str, body: bytes, secret: str, version: str | None = "1", **extra: Any) -> Any:
    """What an agent sends."""
    headers = {"Authorization": f"Bearer {secret}"}
    if version is not None:
        headers[protocol.VERSION_HEADER] = version
    return client.post(path, body, content_type="application/json", headers=headers, **extra)


def beat(client: Client, credential: str, boot_id: UUID, sequence: int = 1) -> Any:
    """A beat."""
    said = wire.Beat(boot_id=boot_id, sequence=sequence, sent_at=datetime.now(UTC), agent_version="0.1.0")
    return post(client, protocol.HEARTBEAT, wire.encode(said), credential)
