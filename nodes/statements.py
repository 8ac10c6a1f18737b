"""The two statements of a beat, sent as directly as the database's driver allows.

On PostgreSQL beats have a connection of their own, and Django's cursor, made and wrapped anew for each statement, costs
a tenth of a beat; so the statement goes to psycopg itself, prepared once per connection. Everywhere else Django's
cursor serves.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections


def row(statement: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
    """The first row that a query finds.

    This is a beat's first statement. Where the database was away meanwhile, each thread still holds a connection of
    before; a fresh one is tried at once, else one agent would be refused by one thread after the other.
    """
    try:
        return _row(statement, parameters)
    except (OperationalError, InterfaceError):
        connection = connections[settings.BEATS_DATABASE]
        if connection.in_atomic_block or connection.connection is None or connection.is_usable():
            raise
        connection.close()
    return _row(statement, parameters)


def _row(statement: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
    with _sent(statement, parameters) as cursor:
        found: tuple[Any, ...] | None = cursor.fetchone()
    return found


def changed(statement: str, parameters: Sequence[Any]) -> int:
    """How many rows an update changed; it is committed at once."""
    with _sent(statement, parameters) as cursor:
        count: int = cursor.rowcount
    return count


def _sent(statement: str, parameters: Sequence[Any]) -> Any:
    alias = settings.BEATS_DATABASE
    connection = connections[alias]
    if alias == DEFAULT_DB_ALIAS:
        cursor = connection.cursor()
        cursor.execute(statement, parameters)
        return cursor
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return connection.connection.execute(statement, parameters, prepare=True)
