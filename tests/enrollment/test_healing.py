"""A lost reply to an enrollment is healed, and nothing else is."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from agent.protocol import Code
from enrollment import credentials
from enrollment.models import NodeCredential
from nodes.audit import events
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.models import Node
from tests.enrollment.asking import SECOND, admit, enroll, identify, invited, refused, states, told

pytestmark = pytest.mark.django_db


def test_a_lost_reply_is_healed_by_asking_again(operator: Caller, now: datetime) -> None:
    """Field case 3."""
    _, token = invited(operator, now)
    message = enroll()
    lost = admit(token, now, message)
    healed = admit(token, now + timedelta(seconds=899), message)
    assert healed.node_id == lost.node_id
    assert Node.objects.count() == 1
    assert identify(healed.credential, now + timedelta(seconds=900)).node_id == lost.node_id
    assert told(lost.node_id)[:3] == [
        EventType.NODE_ENROLLED,
        EventType.CREDENTIAL_ISSUED,
        EventType.CREDENTIAL_ISSUED,
    ]


def test_the_unused_credential_dies_when_a_lost_reply_is_healed(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    message = enroll()
    lost = admit(token, now, message)
    admit(token, now + SECOND, message)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(lost.credential, now + SECOND)
    assert states(message.node_id) == ["superseded", "pending"]


@pytest.mark.parametrize(
    ("why", "later"), [("used once", 1), ("the token's lifetime is over", 900), ("another node asks", 1)]
)
def test_nothing_is_healed_once(why: str, later: int, operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    message = enroll()
    first = admit(token, now, message)
    if why == "used once":
        identify(first.credential, now)
    if why == "another node asks":
        message = enroll()
    with refused(Code.TOKEN_USED):
        admit(token, now + timedelta(seconds=later), message)
    assert NodeCredential.objects.count() == 1


def test_a_revoked_credential_is_not_brought_back_by_healing(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    message = enroll()
    admit(token, now, message)
    credentials.revoke(Node.objects.get(), reason="lost", by=operator, now=now)
    with refused(Code.TOKEN_USED):
        admit(token, now, message)


def test_a_node_that_never_got_its_reply_is_let_in_by_another_token(operator: Caller, now: datetime) -> None:
    _, first = invited(operator, now)
    message = enroll()
    lost = admit(first, now, message)
    later = now + timedelta(hours=1)
    _, second = invited(operator, later)
    assert identify(admit(second, later, message).credential, later).node_id == message.node_id
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(lost.credential, later)


def test_a_healed_reply_tells_the_history_what_it_replaces(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    message = enroll(uuid4())
    lost = admit(token, now, message)
    admit(token, now, message)
    details = events().filter(type=EventType.CREDENTIAL_ISSUED)[0].details
    assert details["replaces_unused"] == lost.credential.split("_")[1]
