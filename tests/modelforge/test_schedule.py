"""The schedule and its tasks: two lines each, dropped when late, harmless when doubled."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connections
from pytest_django import Settings

from modelforge import tasks, waking
from modelforge.celery import app
from nodes import continuity
from nodes.audit import events
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import ControlPlane, Heartbeat, Node


def test_every_entry_names_a_task_and_expires_within_its_interval() -> None:
    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in app.tasks
        assert entry["options"]["expires"] <= entry["schedule"].run_every.total_seconds()


@pytest.mark.django_db
def test_the_sweep_marks_what_is_overdue(make_node: Callable[..., Node]) -> None:
    """Field case 83: run twice, it tells once."""
    node, late = make_node(), datetime.now(UTC) - timedelta(seconds=10)
    Heartbeat.objects.filter(node=node).update(
        liveness=Liveness.ONLINE, last_heard_at=late, stale_at=late, offline_at=late + timedelta(hours=1)
    )
    tasks.sweep()
    tasks.sweep()
    assert Heartbeat.objects.get(node=node).liveness == Liveness.STALE
    (event,) = events().filter(type=EventType.NODE_STALE)
    assert event.at == late
    swept_at = ControlPlane.objects.get(id=1).swept_at
    assert swept_at is not None
    assert datetime.now(UTC) - swept_at < timedelta(seconds=30)


@pytest.mark.django_db
def test_sessions_that_ended_are_forgotten() -> None:
    now = datetime.now(UTC)
    for key, ends in (("old", now - timedelta(days=1)), ("live", now + timedelta(days=1))):
        Session.objects.create(session_key=key, session_data="", expire_date=ends)
    tasks.prune()
    assert [session.session_key for session in Session.objects.all()] == ["live"]


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", [True, False])
def test_fresh_facts_are_asked_for_at_a_start_where_the_operator_wants_them(
    wanted: bool, make_node: Callable[..., Node], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "close_all", lambda: None)  # the test's own transaction lives in it
    settings.HARDWARE_REFRESH_ON_STARTUP = wanted
    node = make_node()
    waking.wake(datetime.now(UTC))
    node.refresh_from_db()
    assert node.want_facts is wanted


def test_a_database_that_is_not_ready_does_not_stop_the_web(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 82."""

    def away(now: datetime) -> None:
        raise DatabaseError("no such table")

    monkeypatch.setattr(continuity, "resume", away)
    waking.wake(datetime.now(UTC))
