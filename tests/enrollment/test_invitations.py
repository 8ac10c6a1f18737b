"""Invitations: what they may say, and what they leave behind."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from agent.protocol import Code
from enrollment import admission
from enrollment.invitations import TokenState, in_state, state_of
from enrollment.models import EnrollmentToken
from nodes.audit import events
from nodes.callers import Caller
from nodes.event_types import EventType
from tests.enrollment.asking import SECOND, admit, invited, refused, told

pytestmark = pytest.mark.django_db


def test_an_invitation_is_kept_as_it_was_said(operator: Caller, now: datetime) -> None:
    token, _ = invited(
        operator, now, display_name=" server01 ", role="primary-inference", labels={"site": "office"}, lab_eligible=True
    )
    token.refresh_from_db()
    assert (token.display_name, token.role, token.labels) == ("server01", "primary-inference", {"site": "office"})
    assert (token.production_eligible, token.lab_eligible, token.benchmark_eligible) == (False, True, False)
    assert (token.created_by, token.expires_at) == ("admin token", now + timedelta(seconds=900))


def test_the_secret_is_kept_nowhere(operator: Caller, now: datetime) -> None:
    token, secret = invited(operator, now)
    row = str(EnrollmentToken.objects.filter(pk=token.pk).values())
    assert secret not in row
    assert secret.split("_")[2] not in row + str(events().values())


def test_an_invitation_is_told_in_the_history_by_handle_and_last_four(operator: Caller, now: datetime) -> None:
    token, _ = invited(operator, now, display_name="server01")
    event = events().get()
    assert (event.type, event.actor_label, event.at) == (EventType.TOKEN_CREATED, "admin token", now)
    assert (event.details["handle"], event.details["last_four"]) == (token.handle, token.last_four)
    assert event.details["display_name"] == "server01"


@pytest.mark.parametrize("seconds", [60, 7 * 86400])
def test_a_lifetime_at_its_bounds_is_taken(seconds: int, operator: Caller, now: datetime) -> None:
    token, _ = invited(operator, now, lifetime=timedelta(seconds=seconds))
    assert token.expires_at - now == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("expires_in_seconds", {"lifetime": timedelta(seconds=59)}),
        ("expires_in_seconds", {"lifetime": timedelta(days=7, seconds=1)}),
        ("display_name", {"display_name": "x" * 256}),
        ("display_name", {"display_name": "a\x00b"}),
        ("role", {"role": "x" * 65}),
        ("labels.", {"labels": {"": "empty"}}),
        ("labels.a b", {"labels": {"a b": "blank"}}),
        ("labels.site", {"labels": {"site": "x" * 256}}),
        ("labels", {"labels": {f"key{number}": "" for number in range(33)}}),
    ],
)
def test_what_is_out_of_bounds_is_named_and_makes_nothing(
    field: str, said: dict[str, Any], operator: Caller, now: datetime
) -> None:
    with refused(Code.INVALID) as caught:
        invited(operator, now, **said)
    assert [error.field for error in caught.value.errors] == [field]
    assert not EnrollmentToken.objects.exists()


def test_an_auditor_invites_nobody(auditor: Caller, now: datetime) -> None:
    with refused(Code.FORBIDDEN):
        invited(auditor, now)
    assert not EnrollmentToken.objects.exists()


def test_each_token_is_found_in_exactly_the_state_it_stands_in(operator: Caller, now: datetime) -> None:
    open_, expired, used, revoked = (
        invited(operator, now - age)[0] for age in (SECOND, timedelta(hours=1), SECOND, SECOND)
    )
    used_secret = invited(operator, now)
    admit(used_secret[1], now)
    admission.revoke(revoked, by=operator, now=now)
    used.delete()
    found = {state: list(EnrollmentToken.objects.filter(in_state(state, now))) for state in TokenState}
    assert found == {
        TokenState.OPEN: [open_],
        TokenState.EXPIRED: [expired],
        TokenState.USED: [used_secret[0]],
        TokenState.REVOKED: [revoked],
    }
    assert all(state_of(token, now) is state for state, tokens in found.items() for token in tokens)


def test_a_token_expires_at_its_instant_and_not_before(operator: Caller, now: datetime) -> None:
    token, _ = invited(operator, now)
    assert state_of(token, token.expires_at - SECOND) is TokenState.OPEN
    assert state_of(token, token.expires_at) is TokenState.EXPIRED


def test_a_revoked_token_is_told_once(operator: Caller, now: datetime) -> None:
    token, _ = invited(operator, now)
    admission.revoke(token, reason="wrong site", by=operator, now=now)
    again = admission.revoke(token, by=operator, now=now + SECOND)
    assert again.revoked_at == now
    assert told() == [EventType.TOKEN_CREATED, EventType.TOKEN_REVOKED]
    assert events().first().details["reason"] == "wrong site"  # type: ignore[union-attr]


def test_a_used_token_cannot_be_revoked(operator: Caller, now: datetime) -> None:
    token, secret = invited(operator, now)
    admit(secret, now)
    with refused(Code.STATE_CONFLICT):
        admission.revoke(token, by=operator, now=now)


def test_an_auditor_revokes_no_token(operator: Caller, auditor: Caller, now: datetime) -> None:
    token, _ = invited(operator, now)
    with refused(Code.FORBIDDEN):
        admission.revoke(token, by=auditor, now=now)
