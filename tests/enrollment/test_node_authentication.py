"""Who an agent is: found by its credential in one query."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries, Settings

from agent.protocol import Code
from agent.wire import Beat
from enrollment import credentials, secrets
from enrollment.auth import NodeAuthentication
from enrollment.models import NodeCredential
from nodes import control, heartbeats
from nodes.audit import events
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import Node
from tests.conftest import Enrolled
from tests.enrollment.asking import ADDRESS, SECOND, identify, refused, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def used(enrolled_node: Callable[..., Enrolled], now: datetime) -> Enrolled:
    """A node whose credential is in use."""
    enrolled = enrolled_node()
    identify(enrolled.credential, now)
    return enrolled


def test_a_credential_in_use_costs_exactly_one_query(
    used: Enrolled, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1) as queries:
        identify(used.credential, now)
    assert isinstance(queries, CaptureQueriesContext)
    assert queries.captured_queries[0]["sql"].strip().startswith("SELECT")


def test_the_query_sees_the_node_and_its_last_beat(used: Enrolled, now: datetime) -> None:
    beat = Beat(boot_id=uuid4(), sequence=7, sent_at=now, agent_version="0.1.0")
    heartbeats.receive(beat, by=identify(used.credential, now), now=now)
    Node.objects.update(want_facts=True, facts_digest="f" * 64)
    by = identify(used.credential, now + SECOND)
    assert (by.node_id, by.label, by.address, by.kind) == (used.id, "server01", ADDRESS, "node")
    assert (by.liveness, by.boot_id, by.sequence) == (Liveness.ONLINE, beat.boot_id, 7)
    assert by.stale_at == now + timedelta(seconds=3 * by.interval_seconds)
    assert (by.want_facts, by.facts_digest, by.enabled, by.retired) == (True, "f" * 64, True, False)
    assert (by.refused, by.protocol_refused) == (False, False)


def test_the_query_sees_a_node_that_is_disabled_and_was_refused(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    control.disable(used.node, reason="broken fan", by=operator, now=now)
    Node.objects.update(refused_code="node_disabled", protocol_refused="9")
    by = identify(used.credential, now)
    assert (by.enabled, by.refused, by.protocol_refused) == (False, True, True)


def test_a_credential_that_nobody_issued_is_unknown_and_not_told_in_the_history(db: None, now: datetime) -> None:
    with refused(Code.CREDENTIAL_UNKNOWN):
        identify(secrets.mint(secrets.Kind.NODE).text, now)
    assert not events().exists()


def test_the_handle_alone_proves_nothing(used: Enrolled, now: datetime) -> None:
    guess = secrets.mint(secrets.Kind.NODE)
    NodeCredential.objects.update(handle=guess.handle)
    with refused(Code.CREDENTIAL_UNKNOWN):
        identify(guess.text, now)


@pytest.mark.parametrize("header", [None, "", "Basic dXNlcjpwYXNz", "Bearer", "mfn_abc"])
def test_a_request_without_a_bearer_is_unauthenticated(header: str | None, db: None, now: datetime) -> None:
    request = RequestFactory().post("/", headers={} if header is None else {"Authorization": header})
    with refused(Code.UNAUTHENTICATED):
        NodeAuthentication().identify(request, now)


def test_the_scheme_may_be_written_as_one_likes(used: Enrolled, now: datetime) -> None:
    request = RequestFactory().post("/", headers={"Authorization": f"bEaReR {used.credential}"})
    assert NodeAuthentication().identify(request, now).node_id == used.id


def test_an_enrollment_token_is_no_credential_and_is_named(used: Enrolled, now: datetime) -> None:
    with refused(Code.CREDENTIAL_UNKNOWN) as caught:
        identify(used.token, now)
    assert "enrollment token" in caught.value.detail


def test_a_revoked_credential_is_noted_on_the_node_and_told_once(
    used: Enrolled, operator: Caller, now: datetime
) -> None:
    credentials.revoke(used.node, reason="stolen", by=operator, now=now)
    for later in (now, now + SECOND):
        with refused(Code.CREDENTIAL_REVOKED):
            identify(used.credential, later)
    used.node.refresh_from_db()
    assert (used.node.refused_code, used.node.refused_at) == ("credential_revoked", now + SECOND)
    assert told(used.id).count(EventType.NODE_REFUSED) == 1


@pytest.mark.parametrize("credential", ["active", "revoked", "pending"])
def test_a_retired_node_is_known_whatever_its_credential_is(
    credential: str, used: Enrolled, operator: Caller, now: datetime
) -> None:
    text = used.credential
    if credential == "revoked":
        credentials.revoke(used.node, reason="end", by=operator, now=now)
    if credential == "pending":
        _, text = credentials.rotate(used.node, overlap=SECOND, by=operator, now=now)
    control.retire(used.node, reason="gone", by=operator, now=now)
    assert identify(text, now).retired


@pytest.mark.parametrize(("share", "renew"), [(0.66, False), (0.67, True)])
def test_a_node_is_asked_to_renew_when_two_thirds_of_its_credentials_age_are_over(
    share: float, renew: bool, used: Enrolled, now: datetime, settings: Settings
) -> None:
    issued_at = NodeCredential.objects.get().issued_at
    assert identify(used.credential, issued_at + share * settings.CREDENTIAL_MAX_AGE).renew_credential is renew


def test_a_pending_credential_replaced_in_the_same_instant_is_refused(
    used: Enrolled, operator: Caller, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lost = credentials.rotate(used.node, overlap=SECOND, by=operator, now=now)
    real = credentials.first_use

    def after_another_rotation(**said: Any) -> NodeCredential.State:
        credentials.rotate(used.node, overlap=SECOND, by=operator, now=now)
        return real(**said)

    monkeypatch.setattr(credentials, "first_use", after_another_rotation)
    with refused(Code.CREDENTIAL_SUPERSEDED):
        identify(lost, now)
