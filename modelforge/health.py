"""Whether this process lives (``/healthz``), and whether the control plane as a whole can do its work (``/readyz``)."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from nodes.models import ControlPlane

DEADLINE = timedelta(seconds=2)
"""For the broker's answer."""


def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """200 while this process answers at all."""
    return JsonResponse({"healthy": True}, headers={"Cache-Control": "no-store"})


def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """200 when every check is good, else 503; each check says what it saw, and what to do."""
    now = datetime.now(UTC)
    checks = {
        "database": _checked(database),
        "migrations": _checked(migrations),
        "broker": _checked(broker),
        "sweep": _checked(lambda: sweep(now)),
    }
    ready = all(check["ok"] for check in checks.values())
    return JsonResponse(
        {"ready": ready, "checks": checks}, status=200 if ready else 503, headers={"Cache-Control": "no-store"}
    )


def _checked(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return check()
    except DatabaseError:
        return {"ok": False, "detail": "The database does not answer."}


def database() -> dict[str, Any]:
    """The database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return {"ok": True}


def migrations() -> dict[str, Any]:
    """All migrations of this release are applied."""
    missing = _missing_migrations()
    if missing:
        return {"ok": False, "detail": f"{missing} migrations are not applied; run `manage.py migrate`."}
    return {"ok": True}


class _Unapplied(Exception):
    """So that only the good answer is remembered."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def _missing_migrations() -> int:
    try:
        _all_applied()
    except _Unapplied as fault:
        return fault.count
    return 0


@cache
def _all_applied() -> None:
    """Once they are applied they stay so for the life of this process."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        raise _Unapplied(len(missing))


def broker() -> dict[str, Any]:
    """The broker takes the scheduler's messages."""
    url = settings.CELERY_BROKER_URL
    if url == "filesystem://":
        folder = str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_out"])
        if os.access(folder, os.W_OK | os.X_OK):
            return {"ok": True}
        return {"ok": False, "detail": "The queue folder cannot be written; mend MODELFORGE_QUEUE_DIR or its rights."}
    wait = DEADLINE.total_seconds()
    try:
        with redis.Redis.from_url(url, socket_timeout=wait, socket_connect_timeout=wait, retry=None) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return {"ok": False, "detail": "The broker (MODELFORGE_REDIS_URL) does not answer; is it running?"}
    return {"ok": True}


def sweep(now: datetime) -> dict[str, Any]:
    """Somebody swept lately: worker and scheduler are both at work."""
    limit = sweep_limit()
    swept_at = ControlPlane.objects.filter(id=1).values_list("swept_at", flat=True).first()
    if swept_at is None:
        return {"ok": False, "detail": "No sweep ran yet; start the Celery worker and beat."}
    age = now - swept_at
    seen: dict[str, Any] = {
        "ok": age <= limit,
        "age_seconds": round(age.total_seconds(), 1),
        "limit_seconds": limit.total_seconds(),
    }
    if age > limit:
        seen["detail"] = "Sweeps have stopped; look at the Celery worker and beat."
    return seen


def sweep_limit() -> timedelta:
    """How old the last sweep may be."""
    return max(6 * settings.SWEEP_INTERVAL, timedelta(seconds=20))
