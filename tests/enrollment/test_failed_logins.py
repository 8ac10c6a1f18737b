"""What a failed login leaves behind: a person's name, and never a password that was pasted into the wrong field."""

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db

PASTED = "a-password-in-the-wrong-field-4711"


def fail(name: str) -> str:
    """Try to log in; under what name that is kept."""
    answer = Client().post("/admin/login/", {"username": name, "password": "wrong"}, REMOTE_ADDR="192.0.2.9")
    assert answer.status_code in {200, 429}
    return str(AccessAttempt.objects.get().username)


def test_a_persons_failed_login_is_kept_by_name() -> None:
    User.objects.create(username="olga", is_staff=True)
    assert fail("olga") == "olga"


def test_a_name_that_nobody_has_is_kept_as_a_digest() -> None:
    kept = fail(PASTED)
    assert kept.startswith("unknown-")
    assert PASTED not in kept


def test_failures_under_one_unknown_name_are_counted_together() -> None:
    for _ in range(3):
        fail(PASTED)
    assert AccessAttempt.objects.get().failures_since_start == 3


def test_a_name_that_no_database_can_hold_is_no_server_error() -> None:
    assert Client().post("/admin/login/", {"username": "a\x00b", "password": "wrong"}).status_code == 200
