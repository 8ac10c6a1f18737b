"""The login page: guessing from one address is slowed down, whatever names it tries."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

MOST = 3
PASSWORD = "correct-horse-battery-staple"
HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ada(settings: Settings) -> None:
    """Somebody with an account, and an address that may fail three times an hour."""
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"login": f"{MOST}/hour"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}
    User.objects.create_superuser("ada", password=PASSWORD)


def log_in(client: Client, name: str, password: str, address: str = HERE) -> int:
    """The status of the answer."""
    form = {"username": name, "password": password}
    return client.post("/admin/login/", form, REMOTE_ADDR=address).status_code


def guess(client: Client, times: int) -> list[int]:
    """Another name each time."""
    return [log_in(client, f"name-{number}", "guess") for number in range(times)]


def test_an_address_that_guessed_too_often_waits_whatever_name_it_tries(client: Client) -> None:
    assert guess(client, MOST + 1) == [200] * MOST + [429]
    assert log_in(client, "ada", PASSWORD) == 429


def test_it_is_told_how_long(client: Client) -> None:
    guess(client, MOST)
    answer = client.post("/admin/login/", {"username": "ada", "password": "x"}, REMOTE_ADDR=HERE)
    assert 1 <= int(answer["Retry-After"]) <= 3600
    assert f"Wait {answer['Retry-After']} seconds" in answer.content.decode()


def test_an_address_that_failed_less_often_logs_in(client: Client) -> None:
    assert guess(client, MOST - 1) == [200] * (MOST - 1)
    assert log_in(client, "ada", PASSWORD) == 302


def test_another_address_is_not_held_up(client: Client) -> None:
    guess(client, MOST)
    assert log_in(client, "ada", PASSWORD, ELSEWHERE) == 302


def test_logins_that_succeed_are_not_counted() -> None:
    assert [log_in(Client(), "ada", PASSWORD) for _ in range(MOST + 2)] == [302] * (MOST + 2)
