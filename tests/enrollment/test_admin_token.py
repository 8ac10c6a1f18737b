"""``X-ModelForge-Admin-Token``: the admin token and named API keys."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from enrollment import keys, secrets
from enrollment.models import ApiKey
from nodes.audit import events
from nodes.callers import Caller

pytestmark = pytest.mark.django_db

URL = "/api/v1/admin/node-enrollments"
HOUR = timedelta(hours=1)


def ask(text: str) -> Any:
    """A read with this header."""
    return Client().get(URL, headers={"X-ModelForge-Admin-Token": text})


@pytest.fixture
def key(operator: Caller) -> tuple[ApiKey, str]:
    """An operator's key that expires in an hour."""
    now = datetime.now(UTC)
    return keys.create("deploy", ApiKey.Role.OPERATOR, now + HOUR, by=operator, now=now)


def test_the_admin_token_speaks_as_an_operator(api: Client) -> None:
    assert api.post(URL, {}, content_type="application/json").status_code == 201
    event = events().get()
    assert (event.actor_kind, event.actor_role, event.actor_label) == ("admin_token", "operator", "admin token")
    assert (event.address, bool(event.request_id)) == ("127.0.0.1", True)


def test_a_named_key_speaks_under_its_name(key: tuple[ApiKey, str]) -> None:
    client = Client(headers={"X-ModelForge-Admin-Token": key[1]})
    assert client.post(URL, {}, content_type="application/json").status_code == 201
    event = events()[0]
    assert (event.actor_kind, event.actor_id, event.actor_label) == ("api_key", str(key[0].pk), "deploy")


@pytest.mark.parametrize(
    "text", ["wrong", "", "ü", "mfk_x", pytest.param(secrets.mint(secrets.Kind.API_KEY).text, id="unknown")]
)
def test_anything_else_is_unknown(text: str, db: None) -> None:
    answer = ask(text)
    assert (answer.status_code, answer.json()["code"]) == (401, "credential_unknown")
    assert "WWW-Authenticate" in answer


def test_without_an_admin_token_in_the_settings_an_empty_header_opens_nothing(db: None, settings: Settings) -> None:
    settings.OPERATOR_API_KEY = ""
    assert ask("").status_code == 401


def test_the_handle_of_a_key_alone_is_unknown(key: tuple[ApiKey, str]) -> None:
    guess = secrets.mint(secrets.Kind.API_KEY)
    ApiKey.objects.update(handle=guess.handle)
    assert ask(guess.text).json()["code"] == "credential_unknown"


@pytest.mark.parametrize(("field", "code"), [("revoked_at", "api_key_revoked"), ("expires_at", "api_key_expired")])
def test_a_key_that_is_over_says_so_to_its_holder_alone(field: str, code: str, key: tuple[ApiKey, str]) -> None:
    assert ask(key[1]).status_code == 200
    ApiKey.objects.update(**{field: datetime.now(UTC)})
    answer = ask(key[1])
    assert (answer.status_code, answer.json()["code"]) == (401, code)
    assert ask(key[1][:-1]).json()["code"] == "credential_unknown"


def test_the_last_use_is_noted_at_most_once_a_minute(key: tuple[ApiKey, str]) -> None:
    ask(key[1])
    noted = ApiKey.objects.get().last_used_at
    ask(key[1])
    assert ApiKey.objects.get().last_used_at == noted is not None
    long_ago = noted - timedelta(minutes=1)
    ApiKey.objects.update(last_used_at=long_ago)
    ask(key[1])
    assert ApiKey.objects.filter(last_used_at__gte=noted).exists()


def test_unknown_keys_are_throttled_and_the_right_one_is_not(api: Client, settings: Settings) -> None:
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"stranger": "2/hour"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}
    assert [ask("wrong").status_code for _ in range(3)] == [401, 401, 429]
    assert api.get(URL).status_code == 200
