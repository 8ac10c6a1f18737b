"""`manage.py audit_verify` proves the history, and names each place where somebody changed it past the triggers."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from nodes.audit import CONTROL_PLANE, record
from nodes.callers import SYSTEM
from nodes.event_types import EventType
from tests.parts.history import TABLE


@pytest.fixture
def history(db: None, now: datetime) -> None:
    for number in range(4):
        with transaction.atomic():
            at = now + timedelta(minutes=number)
            record(EventType.CONTROL_PLANE_GAP, by=SYSTEM, about=CONTROL_PLANE, at=at, seconds=number)


def tamper(statement: str) -> None:
    """As somebody with the database's own password could."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER nodes_history_no_update")
            cursor.execute("DROP TRIGGER nodes_history_no_delete")
        cursor.execute(statement)


def verify() -> tuple[int, str, str]:
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("audit_verify", stdout=out, stderr=err)
    except SystemExit as end:
        code = int(str(end.code))
    return code, out.getvalue(), err.getvalue()


def test_a_whole_history_is_proven_and_counted(history: None) -> None:
    assert verify() == (0, "The history is whole: 4 events are proven.\n", "")


def test_no_history_is_whole(db: None) -> None:
    assert verify()[0] == 0


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE nodes_auditevent SET actor_label = 'somebody else' WHERE position = 2", "event 2: was changed"),
        ("UPDATE nodes_auditevent SET about_id = 'x' WHERE position = 4", "event 4: was changed"),
        ("DELETE FROM nodes_auditevent WHERE position = 2", "event 2: events 2 to 2 are missing"),
        ("DELETE FROM nodes_auditevent WHERE position = 4", "event 4: the history ends at 3"),
        ("DELETE FROM nodes_auditevent", "the history ends at 0"),
    ],
)
def test_a_change_past_the_triggers_is_found_and_named(history: None, statement: str, told: str) -> None:
    tamper(statement)
    code, out, err = verify()
    assert (code, out) == (1, "")
    assert told in err
    assert "The history is broken" in err
    assert " in 1 places" not in err
