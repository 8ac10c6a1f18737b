"""Enroll node: the token is shown once, in the very answer, with lines that work; the list never shows it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.serializers import serialize
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from enrollment import admission, secrets
from enrollment.models import EnrollmentToken
from nodes.audit import events
from nodes.callers import Caller
from tests.nodes.browsing import instant, sent, words

pytestmark = pytest.mark.django_db

ENROLL = "/admin/enrollment/enrollmenttoken/add/"
LIST = "/admin/enrollment/enrollmenttoken/"
FORM = {
    "display_name": "Server 01",
    "role": "primary-inference",
    "labels": "site=office",
    "expires_in_seconds": "900",
    "lab_eligible": "on",
}


@pytest.fixture
def invite(operator: Caller) -> Callable[..., EnrollmentToken]:
    """Invitations made just now."""

    def make(display_name: str = "server01", *, age: timedelta = timedelta(), **fields: Any) -> EnrollmentToken:
        wanted = admission.Invitation(display_name=display_name, **fields)
        return admission.invite(wanted, by=operator, now=instant() - age)[0]

    return make


def test_the_token_is_shown_in_the_answer_and_may_not_be_kept(mara: Client) -> None:
    response = sent(mara, ENROLL, FORM)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    secret = response.context["secret"]
    assert secrets.parse(secret, secrets.Kind.ENROLLMENT)
    assert secret in words(response)


def test_the_token_says_what_the_form_said(mara: Client) -> None:
    sent(mara, ENROLL, FORM)
    token = EnrollmentToken.objects.get()
    assert (token.display_name, token.role, token.labels) == ("Server 01", "primary-inference", {"site": "office"})
    assert (token.production_eligible, token.lab_eligible, token.benchmark_eligible) == (False, True, False)
    assert token.expires_at - token.created_at == timedelta(minutes=15)
    assert events().get().actor_label == "mara"


def test_the_token_stands_nowhere_afterwards(mara: Client) -> None:
    """Field case 9."""
    secret = sent(mara, ENROLL, FORM).context["secret"]
    kept = serialize("json", [*EnrollmentToken.objects.all(), *events()])
    kept += str([session.get_decoded() for session in Session.objects.all()])
    for path in (LIST, "/admin/", "/admin/nodes/auditevent/", "/admin/nodes/auditevent/1/change/", ENROLL):
        kept += mara.get(path).content.decode()
    assert secret not in kept
    assert secret.split("_")[2] not in kept


def test_the_env_lines_are_those_of_the_deployment_document(mara: Client) -> None:
    response = sent(mara, ENROLL, FORM)
    lines = dict(line.split("=", 1) for line in response.context["env"].splitlines())
    assert lines["MODELFORGE_AGENT_CONTROL_PLANE_URL"] == settings.PUBLIC_URL
    assert lines["MODELFORGE_AGENT_ENROLLMENT_TOKEN"] == response.context["secret"]
    assert lines["MODELFORGE_AGENT_DISPLAY_NAME"] == "Server 01"
    assert lines["MODELFORGE_AGENT_HOSTNAME"] == "server-01"
    assert lines["MODELFORGE_AGENT_TLS_VERIFY"] == "true"
    assert sum(name.endswith("_VOLUME") for name in lines) == 4
    assert lines["COMPOSE_FILE"] == "docker-compose.node-agent.yml"
    assert "docker compose up -d --build" in words(response)


def test_the_page_shows_first_how_to_start_the_agent_in_a_container(mara: Client, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://modelforge.example"
    said = words(sent(mara, ENROLL, FORM))
    assert 0 < said.index("docker compose up -d") < said.index("By hand") < said.index("python -m agent run")


def test_a_control_plane_of_one_machine_shows_first_how_to_start_the_agent_by_hand(
    mara: Client, settings: Settings
) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    response = sent(mara, ENROLL, FORM | {"display_name": "it's $HOME"})
    lines = response.context["exports"].splitlines()
    assert f"export MODELFORGE_AGENT_ENROLLMENT_TOKEN={response.context['secret']}" in lines
    assert """export MODELFORGE_AGENT_DISPLAY_NAME='it'"'"'s $HOME'""" in lines
    for name in ("STATE", "HF_CACHE", "ARTIFACT", "QUARANTINE"):
        assert any(line.startswith(f"export MODELFORGE_AGENT_{name}_DIR=") for line in lines)
    said = words(response)
    assert 0 < said.index("python -m agent run") < said.index("With containers") < said.index("docker compose")


@pytest.mark.parametrize(
    ("name", "line"),
    [("plain one", "plain one"), ("it's $HOME #1", r"'it\'s $HOME #1'")],
)
def test_a_name_stays_one_line_and_means_itself(name: str, line: str, mara: Client) -> None:
    env = sent(mara, ENROLL, FORM | {"display_name": name}).context["env"]
    assert f"MODELFORGE_AGENT_DISPLAY_NAME={line}" in env.splitlines()


def test_a_name_that_would_add_a_line_is_refused(mara: Client) -> None:
    assert sent(mara, ENROLL, FORM | {"display_name": "two\nMODELFORGE_X=1"}).status_code == 422


def test_a_fault_in_the_form_makes_nothing(mara: Client) -> None:
    response = sent(mara, ENROLL, FORM | {"labels": "no equals sign"})
    assert response.status_code == 422
    assert "write key=value" in words(response)
    assert not EnrollmentToken.objects.exists()


def test_a_made_up_lifetime_is_refused(mara: Client) -> None:
    assert sent(mara, ENROLL, FORM | {"expires_in_seconds": "999999999"}).status_code == 422


def test_the_list_says_where_each_stands(
    mara: Client, invite: Callable[..., EnrollmentToken], enrolled_node: Callable[..., Any], operator: Caller
) -> None:
    invite("open-one")
    invite("late-one", age=timedelta(hours=1))
    admission.revoke(invite("typo-one"), by=operator, now=instant())
    enrolled_node("used-one", at=instant())
    for state, name in {"open": "open", "expired": "late", "revoked": "typo", "used": "used"}.items():
        shown = [token.display_name for token in mara.get(f"{LIST}?state={state}").context["cl"].result_list]
        assert shown == [f"{name}-one"]


def test_a_used_token_leads_to_its_node(mara: Client, enrolled_node: Callable[..., Any]) -> None:
    enrolled = enrolled_node("server01", at=instant())
    seen = mara.get(LIST).content.decode()
    assert reverse("admin:nodes_node_change", args=[enrolled.id]) in seen
    assert "/revoke/" not in seen


def test_revoking_is_confirmed_and_told(mara: Client, invite: Callable[..., EnrollmentToken]) -> None:
    token = invite()
    to = reverse("admin:enrollment_enrollmenttoken_revoke", args=[token.pk])
    assert mara.get(to).status_code == 200
    assert EnrollmentToken.objects.get().revoked_at is None
    assert mara.post(to, {"reason": "typo"}).status_code == 302
    assert EnrollmentToken.objects.get().revoked_at is not None
    assert events()[0].details["reason"] == "typo"


def test_a_used_token_is_not_revoked(mara: Client, enrolled_node: Callable[..., Any]) -> None:
    enrolled_node(at=instant())
    to = reverse("admin:enrollment_enrollmenttoken_revoke", args=[EnrollmentToken.objects.get().pk])
    response = mara.post(to, {})
    assert response.status_code == 422
    assert "Revoke the node's credential instead" in words(response)


def test_the_list_asks_as_often_for_many_as_for_few(mara: Client, invite: Callable[..., EnrollmentToken]) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            mara.get(LIST)
        return len(queries)

    invite()
    few = asked()
    for number in range(12):
        invite(f"server{number}")
    assert asked() == few
