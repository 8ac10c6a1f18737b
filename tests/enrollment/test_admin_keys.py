"""API keys by the page: shown once, listed by their last four, revoked."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from enrollment import keys, secrets
from enrollment.models import ApiKey
from nodes.audit import events
from nodes.callers import Caller
from tests.nodes import browsing
from tests.nodes.browsing import instant, sent, words

pytestmark = pytest.mark.django_db

LIST = "/admin/enrollment/apikey/"
ADD = f"{LIST}add/"
FORM = {"name": "nightly", "role": "auditor", "days": "30"}


def test_the_key_is_shown_in_the_answer_and_works(mara: Client) -> None:
    response = sent(mara, ADD, FORM)
    assert "no-store" in response["Cache-Control"]
    secret = response.context["secret"]
    assert secrets.parse(secret, secrets.Kind.API_KEY)
    assert secret not in mara.get(LIST).content.decode()
    answer = Client().get("/api/v1/hardware/nodes", headers={"X-ModelForge-Admin-Token": secret})
    assert answer.status_code == 200


def test_the_key_ends_as_asked(mara: Client) -> None:
    sent(mara, ADD, FORM)
    sent(mara, ADD, FORM | {"name": "for-ever", "days": ""})
    ends = {key.name: key.expires_at for key in ApiKey.objects.all()}
    assert ends["for-ever"] is None
    assert ends["nightly"] is not None
    assert abs(ends["nightly"] - instant() - timedelta(days=30)) < timedelta(minutes=1)


def test_a_name_in_use_is_refused_in_plain_words(mara: Client) -> None:
    sent(mara, ADD, FORM)
    response = sent(mara, ADD, FORM)
    assert response.status_code == 422
    assert "is in use; revoke it first" in words(response)


def test_revoking_is_confirmed_and_told(mara: Client, operator: Caller) -> None:
    key, _ = keys.create("nightly", ApiKey.Role.AUDITOR, None, by=operator, now=instant())
    to = reverse("admin:enrollment_apikey_revoke", args=[key.pk])
    assert to in mara.get(LIST).content.decode()
    assert mara.get(to).status_code == 200
    assert mara.post(to).status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert to not in mara.get(LIST).content.decode()
    assert events()[0].type == "api_key.revoked"


def test_an_auditor_sees_the_keys_and_no_verb(operator: Caller) -> None:
    key, _ = keys.create("nightly", ApiKey.Role.AUDITOR, None, by=operator, now=instant())
    response = browsing.an_auditor().get(LIST)
    assert f"…{key.last_four}" in words(response)
    assert "/revoke/" not in response.content.decode()
    assert ADD not in response.content.decode()
