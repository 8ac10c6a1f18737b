"""The database itself refuses to change or delete history, and keeps heartbeats where they are rewritten in place."""

from django.db import migrations

POSTGRESQL = """
CREATE FUNCTION nodes_history_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the history is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER nodes_history_no_change BEFORE UPDATE OR DELETE ON nodes_auditevent
    FOR EACH ROW EXECUTE FUNCTION nodes_history_is_append_only();
CREATE TRIGGER nodes_history_no_truncate BEFORE TRUNCATE ON nodes_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION nodes_history_is_append_only();
ALTER TABLE nodes_heartbeat SET (fillfactor = 70);
"""

POSTGRESQL_BACK = """
ALTER TABLE nodes_heartbeat RESET (fillfactor);
DROP TRIGGER nodes_history_no_truncate ON nodes_auditevent;
DROP TRIGGER nodes_history_no_change ON nodes_auditevent;
DROP FUNCTION nodes_history_is_append_only();
"""

SQLITE = [
    "CREATE TRIGGER nodes_history_no_update BEFORE UPDATE ON nodes_auditevent"
    " BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END",
    # INSERT OR REPLACE deletes without asking the trigger on DELETE.
    "CREATE TRIGGER nodes_history_no_replace BEFORE INSERT ON nodes_auditevent"
    " WHEN EXISTS (SELECT 1 FROM nodes_auditevent WHERE position = NEW.position OR hash = NEW.hash)"
    " BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END",
    "CREATE TRIGGER nodes_history_no_delete BEFORE DELETE ON nodes_auditevent"
    " BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END",
]

SQLITE_BACK = [f"DROP TRIGGER nodes_history_no_{verb}" for verb in ("update", "replace", "delete")]


def forwards(apps, schema_editor):
    for statement in [POSTGRESQL] if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


def backwards(apps, schema_editor):
    for statement in [POSTGRESQL_BACK] if schema_editor.connection.vendor == "postgresql" else SQLITE_BACK:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("nodes", "0001_initial")]
    operations = [migrations.RunPython(forwards, backwards, elidable=False)]
