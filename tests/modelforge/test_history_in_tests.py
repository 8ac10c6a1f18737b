"""The database refuses to lose history, while the tests' own clean-up may empty it."""

from datetime import datetime

import pytest
from django.db import DatabaseError, connection, transaction

from nodes.audit import CONTROL_PLANE, events, record
from nodes.callers import SYSTEM
from nodes.event_types import EventType


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_with_real_transactions_starts_with_an_empty_history(turn: int, now: datetime) -> None:
    assert events().count() == 0
    with transaction.atomic():
        record(EventType.CONTROL_PLANE_GAP, by=SYSTEM, about=CONTROL_PLANE, at=now)
    assert events().count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", ["DELETE FROM nodes_auditevent", "UPDATE nodes_auditevent SET actor_label = 'x'"])
def test_the_database_refuses_to_change_what_was_recorded(statement: str, now: datetime) -> None:
    with transaction.atomic():
        record(EventType.CONTROL_PLANE_GAP, by=SYSTEM, about=CONTROL_PLANE, at=now)
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement)
    assert events().count() == 1
