"""Letting a node in: once, and nobody else."""

from datetime import datetime
from typing import Any

import pytest

from agent.protocol import Code
from enrollment import admission, credentials, secrets
from enrollment.models import EnrollmentToken
from nodes import control
from nodes.audit import broken, events, verify
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import CredentialState, Node
from tests.enrollment.asking import ADDRESS, SECOND, admit, enroll, identify, invited, refused, states, told

pytestmark = pytest.mark.django_db


def test_a_node_is_let_in_as_the_invitation_says(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now, display_name="server01", role="lab", labels={"site": "office"}, lab_eligible=True)
    message = enroll(hostname="a_B", display_name="another")
    admit(token, now, message)
    node = Node.objects.get(pk=message.node_id)
    assert (node.display_name, node.hostname, node.role, node.labels) == ("server01", "a_B", "lab", {"site": "office"})
    assert (node.production_eligible, node.lab_eligible, node.benchmark_eligible) == (False, True, False)
    assert (node.enrolled_at, node.address, node.agent_version, node.protocol_version) == (now, ADDRESS, "0.1.0", 1)
    assert (node.heartbeat.liveness, node.heartbeat.last_heard_at) == (Liveness.OFFLINE, None)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"display_name": "Server 01", "hostname": "server01"}, "Server 01"),
        ({"display_name": "", "hostname": "server01"}, "server01"),
        ({"display_name": "<script>", "hostname": "ü" * 255}, "<script>"),
    ],
)
def test_where_the_invitation_names_no_node_the_agent_does(
    said: dict[str, Any], name: str, operator: Caller, now: datetime
) -> None:
    """Field case 15."""
    _, token = invited(operator, now)
    assert admit(token, now, enroll(**said)).display_name == name


def test_the_credential_it_is_told_proves_the_node(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    enrolled = admit(token, now)
    by = identify(enrolled.credential, now)
    assert (by.node_id, by.label, by.address) == (enrolled.node_id, "server01", ADDRESS)
    assert enrolled.heartbeat_interval_seconds >= 1


def test_an_admission_is_told_whole_and_without_secrets(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    enrolled = admit(token, now)
    assert told(enrolled.node_id) == [EventType.NODE_ENROLLED, EventType.CREDENTIAL_ISSUED]
    everything = str(list(events().values()))
    assert token.split("_")[2] not in everything
    assert enrolled.credential.split("_")[2] not in everything
    issued = events().first()
    assert issued is not None
    assert (issued.actor_kind, issued.actor_id, issued.request_id) == ("node", str(enrolled.node_id), "request-1")
    assert not broken(verify())


def test_a_used_token_lets_no_other_node_in(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    admit(token, now)
    with refused(Code.TOKEN_USED):
        admit(token, now)
    assert Node.objects.count() == 1


def test_the_states_of_a_token_are_told_apart_to_its_holder(operator: Caller, now: datetime) -> None:
    """Field case 7."""
    used, expired, revoked = (invited(operator, now) for _ in range(3))
    admit(used[1], now)
    admission.revoke(revoked[0], by=operator, now=now)
    EnrollmentToken.objects.filter(pk=expired[0].pk).update(expires_at=now)
    for (_, token), code in ((used, Code.TOKEN_USED), (expired, Code.TOKEN_EXPIRED), (revoked, Code.TOKEN_REVOKED)):
        with refused(code):
            admit(token, now)


@pytest.mark.parametrize("state", ["open", "used", "expired", "revoked"])
def test_who_knows_only_the_handle_hears_nothing_of_the_state(state: str, operator: Caller, now: datetime) -> None:
    """Field case 7."""
    row, token = invited(operator, now)
    if state == "used":
        admit(token, now)
    if state == "revoked":
        admission.revoke(row, by=operator, now=now)
    if state == "expired":
        EnrollmentToken.objects.filter(pk=row.pk).update(expires_at=now)
    guess = secrets.mint(secrets.Kind.ENROLLMENT)
    EnrollmentToken.objects.filter(pk=row.pk).update(handle=guess.handle)
    with refused(Code.TOKEN_UNKNOWN):
        admit(guess.text, now)


def test_a_token_that_nobody_made_is_unknown(db: None, now: datetime) -> None:
    with refused(Code.TOKEN_UNKNOWN):
        admit(secrets.mint(secrets.Kind.ENROLLMENT).text, now)


def test_a_truncated_token_is_unknown_and_the_remedy_is_told(operator: Caller, now: datetime) -> None:
    _, token = invited(operator, now)
    with refused(Code.TOKEN_UNKNOWN) as caught:
        admit(token[:-5], now)
    assert "cut off" in caught.value.detail


def test_a_name_that_no_database_can_keep_is_refused_and_the_token_is_still_good(
    operator: Caller, now: datetime
) -> None:
    """Field case 4."""
    _, token = invited(operator, now)
    with refused(Code.INVALID) as caught:
        admit(token, now, enroll(hostname="a\x00b"))
    assert [error.field for error in caught.value.errors] == ["hostname"]
    assert admit(token, now).credential


def test_a_node_whose_credential_is_in_use_is_refused_and_the_token_is_still_good(
    operator: Caller, now: datetime
) -> None:
    _, first = invited(operator, now)
    message = enroll()
    identify(admit(first, now, message).credential, now)
    token, second = invited(operator, now)
    with refused(Code.NODE_HAS_CREDENTIAL):
        admit(second, now, message)
    token.refresh_from_db()
    assert token.used_at is None
    assert states(message.node_id) == ["active"]


def test_a_revoked_node_comes_back_as_the_same_node(operator: Caller, now: datetime) -> None:
    _, first = invited(operator, now, display_name="server01", labels={"site": "office"}, production_eligible=True)
    message = enroll()
    identify(admit(first, now, message).credential, now)
    node = Node.objects.get(pk=message.node_id)
    credentials.revoke(node, reason="lost", by=operator, now=now)
    _, second = invited(operator, now, role="lab")
    enrolled = admit(second, now + SECOND, message)
    node.refresh_from_db()
    assert Node.objects.count() == 1
    assert (node.display_name, node.role, node.labels) == ("server01", "lab", {"site": "office"})
    assert (node.production_eligible, node.enrolled_at, node.credential_state) == (False, now, CredentialState.ACTIVE)
    assert told(node.pk)[-2:] == [EventType.NODE_REENROLLED, EventType.CREDENTIAL_ISSUED]
    reenrolled = events().filter(type=EventType.NODE_REENROLLED).get()
    assert reenrolled.details["revised"]["production_eligible"] == {"old": True, "new": False}
    assert identify(enrolled.credential, now + SECOND).node_id == node.pk


def test_a_retired_node_is_not_let_in_and_the_token_is_still_good(operator: Caller, now: datetime) -> None:
    """Field case 23."""
    _, first = invited(operator, now)
    message = enroll()
    admit(first, now, message)
    control.retire(Node.objects.get(), reason="gone", by=operator, now=now)
    _, second = invited(operator, now)
    with refused(Code.NODE_RETIRED):
        admit(second, now, message)
    assert admit(second, now).node_id != message.node_id


def test_a_disabled_node_that_enrolls_again_stays_disabled(operator: Caller, now: datetime) -> None:
    _, first = invited(operator, now)
    message = enroll()
    admit(first, now, message)
    node = Node.objects.get()
    control.disable(node, reason="broken fan", by=operator, now=now)
    credentials.revoke(node, reason="lost", by=operator, now=now)
    _, second = invited(operator, now)
    admit(second, now, message)
    node.refresh_from_db()
    assert not node.enabled
