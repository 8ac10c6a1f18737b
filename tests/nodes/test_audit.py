"""The history: one door, append-only, a chain that shows every change, gap and cut."""

import hashlib
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes import audit
from nodes.audit import BEGINNING, Broken, Subject, events, hash_of, plain, record, record_many, verify
from nodes.callers import SYSTEM, Caller
from nodes.event_types import EventType
from nodes.models import AuditEvent, AuditHead
from tests.nodes.hearing import START, a_node

pytestmark = pytest.mark.django_db

ABOUT = Subject("node", "n1", "server01", uuid.UUID(int=1))


def tell(count: int) -> None:
    """A history of this many events."""
    with transaction.atomic():
        for number in range(count):
            record(EventType.NODE_STALE, by=SYSTEM, about=ABOUT, at=START + timedelta(seconds=number), number=number)


def tamper(statement: str, *values: Any) -> None:
    """What somebody with the database's keys could do: take the triggers away, change the table."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE nodes_auditevent DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER nodes_history_no_update")
            cursor.execute("DROP TRIGGER nodes_history_no_delete")
        cursor.execute(statement, values)


def broken() -> list[Broken]:
    """Where the chain does not hold."""
    return audit.broken(verify())


@pytest.mark.django_db(transaction=True)
def test_history_outside_a_transaction_is_refused() -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        record(EventType.NODE_STALE, by=SYSTEM, about=ABOUT, at=START)


def test_an_event_keeps_who_what_whom_when_and_where_from() -> None:
    by = Caller(kind="person", role=SYSTEM.role, id="7", label="ada", address="192.0.2.9", request_id="r1")
    node = a_node("server01")
    record(EventType.NODE_DISABLED, by=by, about=node, at=START, reason="fan")

    event = events().get()
    assert (event.position, event.type, event.at) == (1, "node.disabled", START)
    assert (event.actor_kind, event.actor_id, event.actor_label) == ("person", "7", "ada")
    assert (event.address, event.request_id) == ("192.0.2.9", "r1")
    assert (event.about_kind, event.about_id, event.about_label) == ("node", str(node.pk), "server01")
    assert (event.node_id, event.details) == (node.pk, {"reason": "fan"})


def test_labels_are_frozen_when_the_subject_is_renamed_or_gone() -> None:
    node = a_node("server01")
    record(EventType.NODE_STALE, by=SYSTEM, about=node, at=START)
    node.display_name = "renamed"
    node.save()
    node.delete()
    assert events().get().about_label == "server01"


def test_each_event_holds_the_hash_of_the_one_before() -> None:
    tell(3)
    first, second, third = events().order_by("position")
    assert [first.previous_hash, second.previous_hash, third.previous_hash] == [BEGINNING, first.hash, second.hash]
    assert (AuditHead.objects.get().position, AuditHead.objects.get().hash) == (3, third.hash)


def test_several_events_at_once_chain_like_single_ones() -> None:
    entries = [audit.Entry(EventType.NODE_STALE, SYSTEM, ABOUT, START, {"n": n}) for n in range(4)]
    tell(1)
    record_many(entries)
    assert list(verify()) == [1, 2, 3, 4, 5]


def test_nothing_to_tell_is_nothing_told() -> None:
    assert record_many([]) == []
    assert not AuditHead.objects.exists()


def test_the_whole_chain_is_proven_in_pieces() -> None:
    tell(7)
    assert list(verify(chunk=2)) == list(range(1, 8))


def test_an_empty_history_holds() -> None:
    assert list(verify()) == []


@pytest.mark.parametrize("change", ["UPDATE nodes_auditevent SET about_label = 'x'", "DELETE FROM nodes_auditevent"])
def test_the_database_refuses_to_change_history(change: str) -> None:
    tell(1)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)
    assert events().get().about_label == "server01"


def test_the_ORM_cannot_delete_history_either() -> None:
    tell(1)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        events().delete()


@pytest.mark.parametrize(
    ("column", "value"),
    [("about_label", "other"), ("actor_id", "somebody"), ("type", "node.offline"), ("details", '{"number": 9}')],
)
def test_a_changed_event_is_found(column: str, value: str) -> None:
    tell(4)
    tamper(f"UPDATE nodes_auditevent SET {column} = %s WHERE position = 2", value)  # noqa: S608
    assert broken() == [Broken(2, "was changed after it was recorded")]


def test_an_event_that_is_dated_back_is_found() -> None:
    tell(4)
    earlier = connection.ops.adapt_datetimefield_value(START - timedelta(days=1))
    tamper("UPDATE nodes_auditevent SET at = %s WHERE position = 2", earlier)
    assert broken() == [Broken(2, "was changed after it was recorded")]


def test_an_event_that_was_changed_with_its_hash_breaks_its_follower() -> None:
    tell(4)
    event = events().get(position=2)
    event.about_label = "other"
    tamper("UPDATE nodes_auditevent SET about_label = 'other', hash = %s WHERE position = 2", hash_of(event))
    assert broken() == [Broken(3, "does not follow from the event before")]


def test_an_event_that_was_taken_out_of_the_middle_is_missed() -> None:
    tell(5)
    tamper("DELETE FROM nodes_auditevent WHERE position = %s", 3)
    assert broken() == [
        Broken(3, "events 3 to 3 are missing"),
        Broken(4, "does not follow from the event before"),
    ]


def test_an_end_that_was_cut_off_is_missed() -> None:
    tell(5)
    tamper("DELETE FROM nodes_auditevent WHERE position > %s", 3)
    assert broken() == [Broken(5, "the history ends at 3, its head says 5")]


def test_a_beginning_that_was_cut_off_is_missed() -> None:
    tell(4)
    tamper("DELETE FROM nodes_auditevent WHERE position <= %s", 2)
    assert [step.position for step in broken()] == [1, 3]


def test_a_history_whose_head_is_gone_is_found() -> None:
    tell(2)
    AuditHead.objects.all().delete()
    assert broken() == [Broken(2, "the history has lost its head")]


def test_what_cannot_be_told_in_json_is_refused_before_it_is_written() -> None:
    with pytest.raises(TypeError, match="object"):
        record(EventType.NODE_STALE, by=SYSTEM, about=ABOUT, at=START, thing=object())
    assert not events().exists()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (timedelta(minutes=10), 600),
        (timedelta(milliseconds=1500), 1.5),
        (datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1))), "2026-03-01T12:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (2.0, 2),
        (-1e-9, 0),
        ({"b", "a"}, ["a", "b"]),
        ((1, None, True), [1, None, True]),
        ({1: timedelta(seconds=1)}, {"1": 1}),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
    ],
)
def test_details_are_told_in_plain_json(value: Any, told: Any) -> None:
    assert plain(value) == told


SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.text(st.characters(), max_size=10)
    | st.timedeltas()
    | st.datetimes(timezones=st.just(UTC))
    | st.uuids()
)
DETAILS = st.dictionaries(
    st.text(max_size=10),
    st.recursive(
        SIMPLE, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_size=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(details=DETAILS, at=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_what_was_told_is_proven_after_the_database_gave_it_back(
    db: None, details: dict[str, Any], at: datetime
) -> None:
    with transaction.atomic():
        entry = audit.Entry(EventType.NODE_REVISED, SYSTEM, ABOUT, at, details)
        [told] = record_many([entry])
        back = AuditEvent.objects.get(position=told.position)
        transaction.set_rollback(True)
    assert back.details == told.details
    assert hash_of(back) == told.hash


def test_the_hash_covers_the_position_and_every_word() -> None:
    tell(1)
    event = events().get()
    seen = {hash_of(event)}
    for name in ("position", "type", "actor_kind", "actor_role", "actor_id", "actor_label", "address", "request_id"):
        before = getattr(event, name)
        setattr(event, name, f"{before}x")
        seen.add(hash_of(event))
        setattr(event, name, before)
    assert len(seen) == 9
    assert all(len(digest) == len(hashlib.sha256().hexdigest()) for digest in seen)


def test_an_event_cannot_be_put_in_the_place_of_another() -> None:
    """SQLite's INSERT OR REPLACE deletes without asking the trigger on DELETE."""
    tell(1)
    verb = "INSERT OR REPLACE" if connection.vendor == "sqlite" else "INSERT"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{verb} INTO nodes_auditevent SELECT * FROM nodes_auditevent WHERE position = 1")  # noqa: S608


def test_when_an_event_was_written_down_is_proven_too() -> None:
    tell(1)
    event = events()[0]
    event.recorded_at = datetime(2001, 1, 1, tzinfo=UTC)
    assert hash_of(event) != event.hash
