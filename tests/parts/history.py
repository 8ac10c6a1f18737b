"""Lets the test runner empty the history between tests, which the database itself refuses to everybody else."""

from typing import Any

from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite

TABLE = "nodes_auditevent"
FLUSH = "sql_flush"


def let_tests_flush_it() -> None:
    """Django's flush, run after each test with real transactions, lifts the triggers while it empties the table."""
    postgres, sqlite = Postgres.ops_class.sql_flush, Sqlite.ops_class.sql_flush

    def flush_postgres(self: Any, style: Any, tables: Any, **options: Any) -> list[str]:
        statements = postgres(self, style, tables, **options)
        if not statements:
            return statements
        lift, restore = (f"ALTER TABLE {TABLE} {verb} TRIGGER USER" for verb in ("DISABLE", "ENABLE"))
        return [lift, *statements, restore]

    def flush_sqlite(self: Any, style: Any, tables: Any, **options: Any) -> list[str]:
        statements = sqlite(self, style, tables, **options)
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [TABLE])
            triggers = cursor.fetchall()
        lift = [f"DROP TRIGGER {name}" for name, _ in triggers]
        return [*lift, *statements, *(sql for _, sql in triggers)]

    for operations, flush in ((Postgres.ops_class, flush_postgres), (Sqlite.ops_class, flush_sqlite)):
        setattr(operations, FLUSH, flush)
