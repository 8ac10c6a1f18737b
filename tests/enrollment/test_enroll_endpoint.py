"""``POST agent/enroll`` and ``POST agent/credential`` as an agent meets them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.test import Client
from pytest_django import Settings

from agent import protocol, wire
from agent.protocol import CREDENTIAL, ENROLL
from enrollment import secrets
from enrollment.models import EnrollmentToken, NodeCredential
from nodes import control
from nodes.audit import events
from nodes.callers import Caller
from nodes.models import Node
from tests.enrollment.asking import admit, beat, enroll, identify, invited, post, told

pytestmark = pytest.mark.django_db

BODY = wire.encode(enroll())


@pytest.fixture
def token(operator: Caller) -> str:
    """An open enrollment token."""
    return invited(operator, datetime.now(UTC))[1]


def problem(answer: Any) -> wire.Problem:
    """The error that was answered."""
    assert answer["Content-Type"] == "application/problem+json"
    return msgspec.json.decode(answer.content, type=wire.Problem)


def test_an_agent_enrolls_and_its_first_beat_is_heard(stranger: Client, token: str) -> None:
    message = enroll()
    answer = post(stranger, ENROLL, wire.encode(message), token)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    enrolled = msgspec.json.decode(answer.content, type=wire.Enrolled)
    assert enrolled.node_id == message.node_id
    assert beat(stranger, enrolled.credential, message.boot_id).status_code == 200
    assert Node.objects.get().heartbeat.sequence == 1


def test_a_lost_reply_is_healed_over_http(stranger: Client, token: str) -> None:
    """Field case 3."""
    first, second = (post(stranger, ENROLL, BODY, token) for _ in range(2))
    assert [first.status_code, second.status_code] == [200, 200]
    assert first.json()["node_id"] == second.json()["node_id"]
    assert beat(stranger, first.json()["credential"], uuid4()).json()["code"] == "credential_superseded"
    assert beat(stranger, second.json()["credential"], uuid4()).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b'{"node_id": "x"}', 400, "invalid"),
        (BODY.replace(b'"server01"', b'""'), 400, "invalid"),
        (BODY.replace(b'"server01"', b'"a\\u0000b"'), 400, "invalid"),
        (BODY.replace(b'"server01"', b'"\\ud800"'), 400, "malformed"),
        (b" " * (protocol.MAX_ENROLL_BYTES + 1), 413, "body_too_large"),
    ],
)
def test_a_bad_body_does_not_spend_the_token(body: bytes, status: int, code: str, stranger: Client, token: str) -> None:
    """Field case 4."""
    answer = post(stranger, ENROLL, body, token)
    assert (answer.status_code, problem(answer).code) == (status, code)
    assert post(stranger, ENROLL, BODY, token).status_code == 200


@pytest.mark.parametrize("version", ["0", "9", None, "abc", ""])
def test_a_protocol_that_we_do_not_speak_is_refused_and_does_not_spend_the_token(
    version: str | None, stranger: Client, token: str
) -> None:
    """Field cases 4 and 25."""
    answer = post(stranger, ENROLL, BODY, token, version)
    assert (answer.status_code, problem(answer).code) == (426, "protocol_unsupported")
    assert problem(answer).protocols == list(protocol.SPOKEN)
    assert post(stranger, ENROLL, BODY, token).status_code == 200


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [("used", 409, "token_used"), ("expired", 410, "token_expired"), ("revoked", 410, "token_revoked")],
)
def test_each_state_has_its_own_status_for_the_holder_of_the_token(
    state: str, status: int, code: str, stranger: Client, token: str
) -> None:
    """Field case 7."""
    now = datetime.now(UTC)
    if state == "used":
        admit(token, now)
    else:
        field = {"expired": "expires_at", "revoked": "revoked_at"}[state]
        EnrollmentToken.objects.update(**{field: now})
    answer = post(stranger, ENROLL, BODY, token)
    assert (answer.status_code, problem(answer).code, problem(answer).retryable) == (status, code, False)


@pytest.mark.parametrize(
    "text", [pytest.param(secrets.mint(secrets.Kind.ENROLLMENT).text, id="unknown"), "mfe_short", "ü", "x" * 5000]
)
def test_any_other_token_is_unknown(text: str, stranger: Client, token: str) -> None:
    answer = post(stranger, ENROLL, BODY, text)
    assert (answer.status_code, problem(answer).code) == (401, "token_unknown")
    assert text not in problem(answer).detail


def test_a_request_without_a_token_is_unauthenticated(stranger: Client, db: None) -> None:
    answer = stranger.post(ENROLL, BODY, "application/json", headers={protocol.VERSION_HEADER: "1"})
    assert (answer.status_code, problem(answer).code) == (401, "unauthenticated")


def test_an_old_token_left_in_the_environment_makes_no_second_node(stranger: Client, token: str) -> None:
    """Field case 8: were the agent to ask again with it, the used credential and its node would stay as they are."""
    enrolled = post(stranger, ENROLL, BODY, token).json()
    boot_id = uuid4()
    beat(stranger, enrolled["credential"], boot_id)
    answer = post(stranger, ENROLL, BODY, token)
    assert (answer.status_code, problem(answer).code) == (409, "token_used")
    assert beat(stranger, enrolled["credential"], boot_id, 2).status_code == 200
    assert Node.objects.count() == 1


def test_guessing_is_throttled_and_a_good_token_from_the_same_address_is_not(
    stranger: Client, token: str, settings: Settings
) -> None:
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"enroll": "2/hour"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}
    guesses = [post(stranger, ENROLL, BODY, secrets.mint(secrets.Kind.ENROLLMENT).text) for _ in range(3)]
    assert [guess.status_code for guess in guesses] == [401, 401, 429]
    assert 0 < int(guesses[-1]["Retry-After"]) <= 3600
    assert problem(guesses[-1]).retryable
    assert post(stranger, ENROLL, BODY, token).status_code == 200


def test_a_strangers_guess_leaves_nothing_in_the_history(stranger: Client, db: None) -> None:
    post(stranger, ENROLL, BODY, secrets.mint(secrets.Kind.ENROLLMENT).text)
    assert not events().exists()


def test_a_get_is_told_which_method_to_use(stranger: Client, db: None) -> None:
    answer = stranger.get(ENROLL)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_the_clock_of_the_agent_plays_no_part(stranger: Client, token: str) -> None:
    """Field case 21: the message holds no time at all, and a beat's is data."""
    enrolled = post(stranger, ENROLL, BODY, token).json()
    said = wire.Beat(boot_id=uuid4(), sequence=1, sent_at=datetime.now(UTC) - timedelta(days=1), agent_version="0.1.0")
    assert post(stranger, protocol.HEARTBEAT, wire.encode(said), enrolled["credential"]).status_code == 200


# A node renews its own credential.


@pytest.fixture
def credential(token: str) -> str:
    """A credential in use."""
    text = admit(token, datetime.now(UTC)).credential
    identify(text, datetime.now(UTC))
    return text


def test_a_node_renews_its_credential_and_goes_on_with_the_new_one(stranger: Client, credential: str) -> None:
    answer = post(stranger, CREDENTIAL, b"", credential)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    reply = msgspec.json.decode(answer.content, type=wire.CredentialReply)
    assert timedelta(hours=23) < reply.old_dies_at - datetime.now(UTC) <= timedelta(days=1)
    boot_id = uuid4()
    assert beat(stranger, credential, boot_id).status_code == 200
    assert beat(stranger, reply.credential, boot_id, 2).status_code == 200
    assert problem(beat(stranger, credential, boot_id, 3)).code == "credential_superseded"


def test_a_renewal_is_told_as_the_nodes_own_deed(stranger: Client, credential: str) -> None:
    post(stranger, CREDENTIAL, b"", credential)
    event = events()[0]
    assert (event.type, event.actor_kind, event.address) == ("credential.renewed", "node", "127.0.0.1")
    assert event.request_id


@pytest.mark.parametrize("version", ["0", None])
def test_a_renewal_in_another_protocol_is_refused(version: str | None, stranger: Client, credential: str) -> None:
    """Field case 25."""
    assert post(stranger, CREDENTIAL, b"", credential, version).status_code == 426
    assert NodeCredential.objects.count() == 1


@pytest.mark.parametrize(("act", "status"), [("disable", 403), ("retire", 410)])
def test_a_node_that_is_disabled_or_retired_renews_nothing(
    act: str, status: int, stranger: Client, credential: str, operator: Caller
) -> None:
    """Field cases 23 and 24."""
    change = {"disable": control.disable, "retire": control.retire}[act]
    change(Node.objects.get(), reason="why", by=operator, now=datetime.now(UTC))
    assert post(stranger, CREDENTIAL, b"", credential).status_code == status
    assert NodeCredential.objects.count() == 1


def test_one_transient_refusal_ends_no_credential(stranger: Client, credential: str) -> None:
    """Field case 18, the server's half: a mangled header is refused, and the credential goes on working."""
    boot_id = uuid4()
    assert beat(stranger, credential[:-1], boot_id).status_code == 401
    assert beat(stranger, credential, boot_id).status_code == 200
    assert not [kind for kind in told() if kind.startswith("node.refused")]


def test_an_old_credential_that_beats_beside_the_healthy_agent_is_told_once(stranger: Client, credential: str) -> None:
    new = post(stranger, CREDENTIAL, b"", credential).json()["credential"]
    boot_id = uuid4()
    for turn in range(1, 6):
        assert beat(stranger, new, boot_id, turn).status_code == 200
        assert problem(beat(stranger, credential, uuid4(), 1)).code == "credential_superseded"
    assert [event.type for event in events()].count("node.refused") == 1
    assert [event.type for event in events()].count("node.accepted_again") == 1


def test_a_node_that_renews_without_end_is_told_to_wait(stranger: Client, credential: str) -> None:
    assert post(stranger, CREDENTIAL, b"", credential).status_code == 200
    again = post(stranger, CREDENTIAL, b"", credential)
    assert (again.status_code, problem(again).code) == (429, "throttled")
    assert 1 <= int(again["Retry-After"]) <= 10
    assert [event.type for event in events()].count("credential.renewed") == 1
