"""A beat's statements survive what happens to a database: its connections of before are replaced, not refused."""

import pytest
from django.conf import settings
from django.db import OperationalError, connections, transaction
from pytest_django import Settings

from nodes import statements

ASK = "SELECT 7"
on_postgresql = pytest.mark.skipif(
    not str(settings.DATABASES["default"]["ENGINE"]).endswith("postgresql"), reason="SQLite closes no connection"
)


def cut() -> None:
    """End the beats' connection from the database's side, as a restart of it does."""
    statements.row(ASK, [])
    pid = connections["beats"].connection.info.backend_pid
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert cursor.fetchone() == (True,)


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_database_closed_is_replaced_at_once() -> None:
    cut()
    assert statements.row(ASK, []) == (7,)


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_it_is_told_for_the_rest_of_it_is_gone() -> None:
    with transaction.atomic(using="beats"):
        cut()
        with pytest.raises(OperationalError):
            statements.row(ASK, [])
        transaction.set_rollback(True, using="beats")


@pytest.mark.django_db
def test_a_wrong_statement_is_told_once(settings: Settings) -> None:
    with pytest.raises(Exception, match="nonsense"), transaction.atomic():
        statements.row("SELECT nonsense", [])
