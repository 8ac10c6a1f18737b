"""Who asks too often is asked to wait; others are not held up by it, and nobody by a cache that is down."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.core.cache import caches
from django.test import Client
from pytest_django import Settings

from agent import wire
from agent.protocol import HEARTBEAT
from enrollment import keys
from enrollment.models import ApiKey
from nodes.callers import Caller
from tests.conftest import Enrolled
from tests.parts.ports import free_port

NODES = "/api/v1/hardware/nodes"


@pytest.fixture
def two_an_hour(settings: Settings) -> None:
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] | {"caller": "2/hour"}
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}


@pytest.fixture
def other(db: None, operator: Caller) -> Client:
    _, secret = keys.create("other", ApiKey.Role.AUDITOR, None, by=operator, now=datetime.now(UTC))
    return Client(headers={"X-ModelForge-Admin-Token": secret})


@pytest.mark.django_db
def test_the_third_of_two_is_told_when_to_come_back(api: Client, two_an_hour: None) -> None:
    assert [api.get(NODES).status_code for _ in range(3)] == [200, 200, 429]
    answer = api.get(NODES)
    assert (answer.json()["code"], answer.json()["retryable"]) == ("throttled", True)
    assert 1 <= int(answer["Retry-After"]) <= 3600


def test_another_caller_from_the_same_address_is_not_held_up(api: Client, other: Client, two_an_hour: None) -> None:
    assert [api.get(NODES).status_code for _ in range(3)][-1] == 429
    assert other.get(NODES).status_code == 200


def test_a_fleet_behind_one_address_is_not_throttled(
    enrolled_node: Callable[..., Enrolled], two_an_hour: None, settings: Settings
) -> None:
    rates = dict.fromkeys(settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"], "1/hour")
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": rates}
    node, boot = enrolled_node(at=datetime.now(UTC)), uuid4()
    for sequence in range(1, 6):
        said = wire.Beat(boot_id=boot, sequence=sequence, sent_at=datetime.now(UTC), agent_version="0.1.0")
        answer = Client().post(HEARTBEAT, wire.encode(said), content_type="application/json", headers=node.headers)
        assert answer.status_code == 200


@pytest.fixture
def no_cache(settings: Settings) -> Iterator[None]:
    """The cache is configured, and nobody listens there."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{free_port()}/0",
        }
    }
    yield
    caches.close_all()


@pytest.mark.django_db
def test_nobody_is_held_up_by_a_cache_that_is_down(api: Client, two_an_hour: None, no_cache: None) -> None:
    """Field case 81."""
    assert [api.get(NODES).status_code for _ in range(4)] == [200] * 4
