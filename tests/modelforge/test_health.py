"""Health: the process alone, and all that the control plane needs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from modelforge import health
from nodes.models import ControlPlane
from tests.parts.ports import free_port
from tests.parts.valkey import Valkey


@pytest.fixture
def swept(db: None) -> None:
    ControlPlane.objects.update_or_create(id=1, defaults={"swept_at": datetime.now(UTC)})


def ready() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()["checks"]


def test_everything_in_order_is_ready(swept: None) -> None:
    status, checks = ready()
    assert status == 200
    assert {name: check["ok"] for name, check in checks.items()} == dict.fromkeys(
        ["database", "migrations", "broker", "sweep"], True
    )


def test_the_process_answers_whatever_else_is_down() -> None:
    assert Client().get("/healthz").json() == {"healthy": True}


@pytest.mark.django_db
def test_no_sweep_yet_is_not_ready() -> None:
    status, checks = ready()
    assert status == 503
    assert "start the Celery worker" in checks["sweep"]["detail"]


def test_an_old_sweep_is_not_ready(swept: None) -> None:
    old = datetime.now(UTC) - health.sweep_limit() - timedelta(seconds=1)
    ControlPlane.objects.update(swept_at=old)
    status, checks = ready()
    assert status == 503
    assert checks["sweep"]["ok"] is False
    assert checks["sweep"]["age_seconds"] > checks["sweep"]["limit_seconds"]


def test_a_broker_that_does_not_answer_is_not_ready(swept: None, settings: Settings) -> None:
    """Field case 81."""
    settings.CELERY_BROKER_URL = f"redis://:hunter2@127.0.0.1:{free_port()}/0"
    status, checks = ready()
    assert status == 503
    assert "MODELFORGE_REDIS_URL" in checks["broker"]["detail"]
    assert "hunter2" not in str(checks)


def test_a_broker_that_is_back_is_ready_again(swept: None, settings: Settings) -> None:
    server = Valkey()
    settings.CELERY_BROKER_URL = server.url()
    assert ready()[0] == 503
    server.start()
    try:
        assert ready()[0] == 200
    finally:
        server.remove()


def test_a_queue_folder_that_is_gone_is_not_ready(swept: None, settings: Settings, tmp_path: Path) -> None:
    settings.CELERY_BROKER_URL = "filesystem://"
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {"data_folder_out": str(tmp_path / "gone")}
    status, checks = ready()
    assert status == 503
    assert "MODELFORGE_QUEUE_DIR" in checks["broker"]["detail"]


def test_a_database_that_is_away_is_not_ready_and_its_address_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 82."""

    def away(*_: object, **__: object) -> None:
        raise OperationalError("could not connect to 10.0.0.7")

    monkeypatch.setattr(connection, "cursor", away)
    health._all_applied.cache_clear()
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == {"ok": False, "detail": "The database does not answer."}
    assert "10.0.0.7" not in answer.content.decode()


@pytest.mark.django_db
def test_a_migration_that_is_missing_is_not_ready() -> None:
    health._all_applied.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(name) FROM django_migrations WHERE app = 'nodes'")
        (last,) = cursor.fetchone()
        cursor.execute("DELETE FROM django_migrations WHERE app = 'nodes' AND name = %s", [last])
    assert "manage.py migrate" in ready()[1]["migrations"]["detail"]
