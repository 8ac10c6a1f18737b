"""Rotation, renewal, first use and revocation of a node's credential."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from agent.protocol import Code
from enrollment import credentials
from enrollment.credentials import DEFAULT_OVERLAP, LONGEST_OVERLAP, RENEWAL_OVERLAP
from enrollment.models import NodeCredential
from nodes import control
from nodes.audit import broken, events, verify
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.models import CredentialState, Node
from tests.conftest import Enrolled
from tests.enrollment.asking import SECOND, identify, refused, states, told

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def used(enrolled_node: Callable[..., Enrolled], now: datetime) -> Enrolled:
    """A node whose credential is in use."""
    enrolled = enrolled_node()
    identify(enrolled.credential, now)
    return enrolled


def rotated(enrolled: Enrolled, by: Caller, now: datetime, overlap: timedelta = DEFAULT_OVERLAP) -> str:
    """The new credential's text."""
    return credentials.rotate(enrolled.node, overlap=overlap, by=by, now=now)[1]


def test_both_credentials_work_until_the_new_one_is_used(used: Enrolled, operator: Caller, now: datetime) -> None:
    """Field case 14."""
    new = rotated(used, operator, now)
    assert identify(used.credential, now + HOUR).node_id == used.id
    assert identify(new, now + HOUR).node_id == used.id
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(used.credential, now + HOUR)
    assert identify(new, now + HOUR + SECOND).node_id == used.id


def test_a_rotation_is_seen_on_the_node_until_the_new_credential_is_used(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    new = rotated(used, operator, now)
    used.node.refresh_from_db()
    assert (used.node.credential_state, used.node.rotation_ends_at) == (CredentialState.ROTATING, now + DEFAULT_OVERLAP)
    identify(new, now + HOUR)
    used.node.refresh_from_db()
    assert (used.node.credential_state, used.node.rotation_ends_at) == (CredentialState.ACTIVE, None)
    assert states(used.node) == ["superseded", "active"]


def test_the_old_credential_dies_at_the_deadline_and_not_before(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    new = rotated(used, operator, now, HOUR)
    assert identify(used.credential, now + HOUR - SECOND)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(used.credential, now + HOUR)
    assert identify(new, now + 2 * HOUR)


def test_no_overlap_ends_the_old_credential_at_once(used: Enrolled, operator: Caller, now: datetime) -> None:
    new = rotated(used, operator, now, timedelta())
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(used.credential, now)
    assert identify(new, now)


@pytest.mark.parametrize("overlap", [-SECOND, LONGEST_OVERLAP + SECOND])
def test_an_overlap_out_of_bounds_changes_nothing(
    overlap: timedelta, used: Enrolled, operator: Caller, now: datetime
) -> None:
    with refused(Code.INVALID) as caught:
        rotated(used, operator, now, overlap)
    assert [error.field for error in caught.value.errors] == ["overlap_seconds"]
    assert states(used.node) == ["active"]


def test_a_second_rotation_before_the_first_use_replaces_the_pending_one(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    first = rotated(used, operator, now)
    second = rotated(used, operator, now + SECOND)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(first, now + 2 * SECOND)
    assert identify(used.credential, now + 2 * SECOND)
    assert identify(second, now + 2 * SECOND)


def test_a_second_rotation_does_not_wake_a_credential_that_died(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    rotated(used, operator, now, HOUR)
    rotated(used, operator, now + 2 * HOUR)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(used.credential, now + 2 * HOUR)
    old = NodeCredential.objects.get(node=used.node, handle=used.credential.split("_")[1])
    assert old.ended_at == now + HOUR


def test_a_rotation_is_told_with_both_dates_and_no_secret(used: Enrolled, operator: Caller, now: datetime) -> None:
    credential, text = credentials.rotate(used.node, overlap=HOUR, by=operator, now=now, reason=" yearly ")
    event = events().filter(type=EventType.CREDENTIAL_ROTATED).get()
    assert event.details == {
        "handle": credential.handle,
        "last_four": credential.last_four,
        "origin": "rotation",
        "old_dies_at": (now + HOUR).isoformat(),
        "reason": "yearly",
    }
    assert text not in str(NodeCredential.objects.values())


def test_a_first_use_is_told_once_with_what_it_supersedes(used: Enrolled, operator: Caller, now: datetime) -> None:
    new = rotated(used, operator, now)
    identify(new, now)
    identify(new, now + SECOND)
    uses = list(events().filter(type=EventType.CREDENTIAL_FIRST_USED).order_by("position"))
    assert len(uses) == 2
    assert uses[-1].details["supersedes"] == used.credential.split("_")[1]


def test_a_revocation_ends_every_credential_at_once(used: Enrolled, operator: Caller, now: datetime) -> None:
    pending = rotated(used, operator, now)
    assert credentials.revoke(used.node, reason="stolen", by=operator, now=now) == 2
    for text in (used.credential, pending):
        with refused(Code.CREDENTIAL_REVOKED):
            identify(text, now)
    used.node.refresh_from_db()
    assert (used.node.credential_state, used.node.rotation_ends_at) == (CredentialState.REVOKED, None)
    assert events().filter(type=EventType.CREDENTIAL_REVOKED).get().details["reason"] == "stolen"


def test_a_repeated_revocation_is_no_fault_and_no_event(used: Enrolled, operator: Caller, now: datetime) -> None:
    credentials.revoke(used.node, reason="stolen", by=operator, now=now)
    assert credentials.revoke(used.node, reason="again", by=operator, now=now) == 0
    assert told(used.id).count(EventType.CREDENTIAL_REVOKED) == 1


def test_a_revoked_node_comes_back_with_a_rotated_credential(used: Enrolled, operator: Caller, now: datetime) -> None:
    credentials.revoke(used.node, reason="stolen", by=operator, now=now)
    new = rotated(used, operator, now)
    assert identify(new, now).node_id == used.id
    used.node.refresh_from_db()
    assert used.node.credential_state == CredentialState.ACTIVE
    with refused(Code.CREDENTIAL_REVOKED):
        identify(used.credential, now)


def test_a_retired_node_gets_no_credential(used: Enrolled, operator: Caller, now: datetime) -> None:
    control.retire(used.node, reason="gone", by=operator, now=now)
    with refused(Code.NODE_RETIRED):
        rotated(used, operator, now)


@pytest.mark.parametrize("act", ["rotate", "revoke"])
def test_an_auditor_changes_no_credential(act: str, used: Enrolled, auditor: Caller, now: datetime) -> None:
    with refused(Code.FORBIDDEN):
        if act == "rotate":
            rotated(used, auditor, now)
        else:
            credentials.revoke(used.node, reason="", by=auditor, now=now)
    assert states(used.node) == ["active"]


def test_a_node_renews_its_own_credential_with_a_day_of_overlap(used: Enrolled, now: datetime) -> None:
    by = identify(used.credential, now)
    credential, new = credentials.renew(by=by, now=now)
    assert credential.node.rotation_ends_at == now + RENEWAL_OVERLAP
    assert identify(used.credential, now + RENEWAL_OVERLAP - SECOND)
    assert identify(new, now + RENEWAL_OVERLAP).node_id == used.id
    assert EventType.CREDENTIAL_RENEWED in told(used.id)


def test_a_renewal_whose_reply_was_lost_is_asked_again(used: Enrolled, now: datetime) -> None:
    by = identify(used.credential, now)
    _, lost = credentials.renew(by=by, now=now)
    _, new = credentials.renew(by=identify(used.credential, now + HOUR), now=now + HOUR)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(lost, now + HOUR)
    assert identify(new, now + HOUR)


def test_a_node_cannot_put_off_the_end_of_its_old_credential(used: Enrolled, operator: Caller, now: datetime) -> None:
    rotated(used, operator, now, HOUR)
    credentials.renew(by=identify(used.credential, now), now=now)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(used.credential, now + HOUR)


@pytest.mark.parametrize(
    ("meanwhile", "code"), [("revoked", Code.CREDENTIAL_REVOKED), ("rotated", Code.CREDENTIAL_SUPERSEDED)]
)
def test_a_credential_that_ended_meanwhile_renews_nothing(
    meanwhile: str, code: Code, used: Enrolled, operator: Caller, now: datetime
) -> None:
    by = identify(used.credential, now)
    if meanwhile == "revoked":
        credentials.revoke(used.node, reason="stolen", by=operator, now=now)
    else:
        identify(rotated(used, operator, now), now)
    before = NodeCredential.objects.count()
    with refused(code):
        credentials.renew(by=by, now=now)
    assert NodeCredential.objects.count() == before


def test_the_history_of_a_whole_life_holds(used: Enrolled, operator: Caller, now: datetime) -> None:
    new = rotated(used, operator, now)
    credentials.renew(by=identify(new, now), now=now)
    credentials.revoke(Node.objects.get(), reason="end", by=operator, now=now)
    assert not broken(verify())
    assert told(used.id) == [
        EventType.NODE_ENROLLED,
        EventType.CREDENTIAL_ISSUED,
        EventType.CREDENTIAL_FIRST_USED,
        EventType.CREDENTIAL_ROTATED,
        EventType.CREDENTIAL_FIRST_USED,
        EventType.CREDENTIAL_RENEWED,
        EventType.CREDENTIAL_REVOKED,
    ]
