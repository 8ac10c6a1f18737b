"""The release before works on the schema of this one: what a migration does to PostgreSQL is read from its SQL."""

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections
from django_migration_linter import MigrationLinter
from django_migration_linter.sql_analyser.analyser import analyse_sql_statements, get_sql_analyser_class

from tests.parts.start import BACKEND

ROOT = Path(__file__).parents[1]
OURS = ["nodes", "enrollment", "artifacts"]
LOCKS = ["CREATE_INDEX"]
"""What is only a warning to the linter, and would hold up a control plane that runs."""

pytestmark = pytest.mark.skipif(
    os.environ.get(BACKEND, "postgresql") == "sqlite",
    reason="SQLite makes tables anew; PostgreSQL counts",
)


@pytest.mark.django_db
def test_the_release_before_survives_every_migration() -> None:
    assert {app.rpartition(".")[2] for app in settings.INSTALLED_APPS} >= set(OURS)
    linter = MigrationLinter(
        str(ROOT), include_apps=OURS, ignore_name=["0001_initial"], warnings_as_errors_tests=LOCKS, no_cache=True
    )
    linter.lint_all_migrations()
    connections["beats"].close()  # the linter's commands look at every database, and leave this one open
    assert linter.nb_total > len(OURS)
    assert not linter.has_errors


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param('ALTER TABLE "t" ADD COLUMN "c" text NOT NULL', id="a column that the release before leaves out"),
        pytest.param('ALTER TABLE "t" DROP COLUMN "c" CASCADE', id="a column that it reads"),
        pytest.param('ALTER TABLE "t" RENAME COLUMN "c" TO "d"', id="another name of a column"),
        pytest.param('ALTER TABLE "t" RENAME TO "u"', id="another name of a table"),
        pytest.param('ALTER TABLE "t" ALTER COLUMN "c" TYPE varchar(10)', id="another type"),
        pytest.param('ALTER TABLE "t" ADD CONSTRAINT "u" UNIQUE ("c")', id="a bound that it does not know"),
        pytest.param('CREATE INDEX "i" ON "t" ("c")', id="an index that locks"),
    ],
)
def test_what_it_would_not_survive_is_found(statement: str) -> None:
    errors, _, warnings = analyse_sql_statements(get_sql_analyser_class("postgresql"), [statement])
    assert errors or [warning.code for warning in warnings] == LOCKS


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param('ALTER TABLE "t" ADD COLUMN "c" text NULL', id="a column that may be empty"),
        pytest.param('ALTER TABLE "t" ADD COLUMN "c" text DEFAULT \'\' NOT NULL', id="a default of the database's"),
        pytest.param('CREATE TABLE "t" ("c" text NOT NULL)', id="a table"),
        pytest.param('CREATE INDEX CONCURRENTLY "i" ON "t" ("c")', id="an index that does not lock"),
    ],
)
def test_what_it_survives_is_let_pass(statement: str) -> None:
    errors, _, warnings = analyse_sql_statements(get_sql_analyser_class("postgresql"), [statement])
    assert not errors
    assert not warnings
