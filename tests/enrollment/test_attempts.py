"""Guessing is slowed down, and nobody who proves a good secret is held up by it."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
import structlog
from django.core.cache import cache
from pytest_django import Settings
from redis.exceptions import ConnectionError as RedisIsAway

from agent.protocol import Code
from enrollment import attempts, secrets
from nodes.callers import Refused
from tests.conftest import Enrolled
from tests.enrollment.asking import identify, refused

MOST = 3


@pytest.fixture(autouse=True)
def _three_a_minute(settings: Settings) -> None:
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"stranger": f"{MOST}/minute"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}


def fail(now: datetime, address: str = "192.0.2.1") -> Refused:
    """One more unknown secret."""
    known = Refused(Code.CREDENTIAL_UNKNOWN, "unknown")
    return attempts.failed("stranger", known, address=address, handle="handle", now=now)


def codes(now: datetime, times: int, address: str = "192.0.2.1") -> list[Code]:
    """What so many failures hear."""
    return [fail(now, address).code for _ in range(times)]


def test_failures_beyond_the_rate_are_throttled(now: datetime) -> None:
    assert codes(now, MOST + 1) == [Code.CREDENTIAL_UNKNOWN] * MOST + [Code.THROTTLED]


def test_a_throttled_one_is_told_when_to_come_back(now: datetime) -> None:
    codes(now, MOST)
    assert fail(now + timedelta(seconds=20)).retry_after == timedelta(seconds=40)


def test_the_next_window_begins_anew(now: datetime) -> None:
    codes(now, MOST + 1)
    assert fail(now + timedelta(minutes=1)).code is Code.CREDENTIAL_UNKNOWN


def test_another_address_is_not_held_up(now: datetime) -> None:
    codes(now, MOST + 1)
    assert fail(now, "192.0.2.2").code is Code.CREDENTIAL_UNKNOWN


def test_addresses_of_one_ipv6_network_are_counted_together(now: datetime) -> None:
    codes(now, MOST, "2001:db8::1")
    assert fail(now, "2001:db8::ffff").code is Code.THROTTLED
    assert fail(now, "2001:db8:0:1::1").code is Code.CREDENTIAL_UNKNOWN


def test_a_good_credential_is_never_throttled(enrolled_node: Callable[..., Enrolled], now: datetime) -> None:
    enrolled = enrolled_node()
    for _ in range(MOST):
        with refused(Code.CREDENTIAL_UNKNOWN):
            identify(secrets.mint(secrets.Kind.NODE).text, now)
    with refused(Code.THROTTLED):
        identify(secrets.mint(secrets.Kind.NODE).text, now)
    assert identify(enrolled.credential, now).node_id == enrolled.id


def test_the_log_names_address_and_handle_and_falls_silent_beyond_the_rate(now: datetime) -> None:
    with structlog.testing.capture_logs() as lines:
        codes(now, MOST + 5)
    assert [line["event"] for line in lines] == ["unknown secret refused"] * MOST + ["unknown secrets throttled"]
    assert (lines[0]["address"], lines[0]["handle"]) == ("192.0.2.1", "handle")


def test_a_malformed_secret_is_not_in_the_log(db: None, now: datetime) -> None:
    text = secrets.mint(secrets.Kind.NODE).text[:-1]
    with structlog.testing.capture_logs() as lines, refused(Code.CREDENTIAL_UNKNOWN):
        identify(text, now)
    assert [line["handle"] for line in lines] == ["malformed"]
    assert text.split("_")[2] not in str(lines)


def test_a_cache_that_is_away_hides_no_refusal(now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise RedisIsAway

    monkeypatch.setattr(cache, "add", away)
    assert codes(now, MOST + 1) == [Code.CREDENTIAL_UNKNOWN] * (MOST + 1)
