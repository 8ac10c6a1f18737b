"""``make bench``: measure what the project promises about cost; exits 1 where a bound is missed.

Name parts to run only those: ``python -m bench beats sweep pages idle arrival acquire``.
"""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.report import Report
from tests.parts.postgres import Postgres

PARTS = ("beats", "sweep", "pages", "idle", "arrival", "acquire")
NO_DATABASE = ("acquire",)
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "256MB"}


def child(part: str, database: str, postgres_pid: str) -> int:
    """One part, in a process whose settings name one database."""
    import django  # noqa: PLC0415 - only after the environment names the database

    django.setup()
    report = Report()
    module = importlib.import_module(f"bench.{part}")
    if part == "beats":
        module.main(report, int(postgres_pid), database)
    else:
        module.main(report)
    return _missed(report)


def main(parts: list[str]) -> int:
    """Every part on every database that it concerns."""
    failed = 0
    for part in parts:
        if part in NO_DATABASE:
            report = Report()
            importlib.import_module(f"bench.{part}").main(report)
            failed |= _missed(report)
    if with_database := [part for part in parts if part not in NO_DATABASE]:
        failed |= _on_databases(with_database)
    print("\nAll bounds hold." if not failed else "\nA bound was missed.")
    return 1 if failed else 0


def _on_databases(parts: list[str]) -> int:
    failed = 0
    postgres = Postgres(**DURABLE).start()
    try:
        with tempfile.TemporaryDirectory(prefix="modelforge-bench-") as folder:
            (Path(folder) / "static").mkdir()
            for part in parts:
                for database in _databases(part, postgres, Path(folder)):
                    environment = os.environ | {
                        "MODELFORGE_DATABASE_URL": database,
                        "MODELFORGE_VAR_DIR": folder,
                        "MODELFORGE_SECRET_KEY": "the-secret-key-of-the-bench-0123456789-0123456789",
                        "MODELFORGE_LOG_LEVEL": "WARNING",
                        "DJANGO_SETTINGS_MODULE": "modelforge.settings",
                    }
                    command = [sys.executable, "-m", "bench", "--child", part, database, str(postgres.pid)]
                    failed |= subprocess.run(command, env=environment, check=False).returncode
    finally:
        postgres.remove()
    return failed


def _missed(report: Report) -> int:
    for what in report.missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if report.missed else 0


def _databases(part: str, postgres: Postgres, folder: Path) -> list[str]:
    both = [postgres.create(f"bench_{part}"), f"sqlite:///{folder}/{part}.sqlite3"]
    return {"beats": both[:1], "sweep": both, "pages": both[:1], "idle": both[1:], "arrival": both[:1]}[part]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started beside it is ended, as by Ctrl-C
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(*sys.argv[2:]))
    sys.exit(main(sys.argv[1:] or list(PARTS)))
