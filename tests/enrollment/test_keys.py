"""Named API keys: made, and revoked."""

from datetime import datetime, timedelta

import pytest

from agent.protocol import Code
from enrollment import keys
from enrollment.models import ApiKey
from nodes.audit import events
from nodes.callers import Caller
from nodes.event_types import EventType
from tests.enrollment.asking import SECOND, refused, told

pytestmark = pytest.mark.django_db

OPERATOR, AUDITOR = ApiKey.Role.OPERATOR, ApiKey.Role.AUDITOR


def test_a_key_is_told_in_the_history_without_its_secret(operator: Caller, now: datetime) -> None:
    key, text = keys.create(" reports ", AUDITOR, now + timedelta(days=1), by=operator, now=now)
    event = events().get()
    assert (event.type, event.about_label, key.name) == (EventType.API_KEY_CREATED, "reports", "reports")
    assert (event.details["role"], event.details["handle"]) == ("auditor", key.handle)
    assert text.split("_")[2] not in str(event.details) + str(ApiKey.objects.values())


@pytest.mark.parametrize(
    ("name", "later", "field"), [("", 1, "name"), ("x" * 256, 1, "name"), ("x\x00", 1, "name"), ("x", 0, "expires_at")]
)
def test_a_key_out_of_bounds_is_named(name: str, later: int, field: str, operator: Caller, now: datetime) -> None:
    with refused(Code.INVALID) as caught:
        keys.create(name, AUDITOR, now + later * SECOND, by=operator, now=now)
    assert [error.field for error in caught.value.errors] == [field]


def test_two_live_keys_never_share_a_name(operator: Caller, now: datetime) -> None:
    first, _ = keys.create("deploy", OPERATOR, None, by=operator, now=now)
    with refused(Code.STATE_CONFLICT):
        keys.create("deploy", OPERATOR, None, by=operator, now=now)
    keys.revoke(first, by=operator, now=now)
    assert keys.create("deploy", OPERATOR, None, by=operator, now=now)[0].pk != first.pk


def test_a_key_is_revoked_once(operator: Caller, now: datetime) -> None:
    key, _ = keys.create("deploy", OPERATOR, None, by=operator, now=now)
    keys.revoke(key, by=operator, now=now)
    assert keys.revoke(key, by=operator, now=now + SECOND).revoked_at == now
    assert told() == [EventType.API_KEY_CREATED, EventType.API_KEY_REVOKED]


def test_an_auditor_makes_and_revokes_no_key(operator: Caller, auditor: Caller, now: datetime) -> None:
    key, _ = keys.create("deploy", OPERATOR, None, by=operator, now=now)
    with refused(Code.FORBIDDEN):
        keys.create("mine", OPERATOR, None, by=auditor, now=now)
    with refused(Code.FORBIDDEN):
        keys.revoke(key, by=auditor, now=now)
