"""The two statements of a beat, sent as directly as the database's driver allows.

On PostgreSQL beats have a connection of their own, and Django's cursor, made and wrapped anew for each statement, costs
a tenth of a beat; so the statement goes to psycopg itself, prepared once per connection. Everywhere else Django's
cursor serves. Either way Django notices a broken connection, and replaces it with the next request.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections


def row(statement: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
    """The first row that a query finds."""
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
