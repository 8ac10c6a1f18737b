"""A whole control plane of real processes: web server, worker with its scheduler, database and broker of its own."""

import functools
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import requests

from modelforge.children import Child
from tests.parts.ports import free_port, until
from tests.parts.start import ADDRESSES, BACKEND, Started
from tests.parts.valkey import Valkey

ROOT = Path(__file__).parents[2]
ADMIN_TOKEN = "the-admin-token-of-a-walk-0123456789abcdef"
INTERVAL = timedelta(seconds=1)
"""Between two beats, and between two sweeps: stale after three, offline after six."""
POSTGRES = os.environ.get(BACKEND, "postgresql") == "postgresql"

_numbers = itertools.count(1)
_WEB = ["granian", "--interface", "wsgi", "--http", "1", "--no-ws", "--workers", "1", "--blocking-threads", "1"]
_WORKER = ["celery", "--quiet", "--app", "modelforge.celery", "worker", "--beat", "--pool", "solo"]
_QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat"]


class ControlPlane:
    """Web and worker as processes; ``stop`` and ``start`` again keep the database, the address and the logs."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.headers = {"X-ModelForge-Admin-Token": ADMIN_TOKEN}
        self.broker = Valkey().start() if POSTGRES else None
        self._database = _copy_of_the_template(folder)
        self._session = requests.Session()
        self._session.trust_env = False
        self.environment = _environment(folder, self._database) | {
            "MODELFORGE_PUBLIC_URL": self.url,
            "MODELFORGE_OPERATOR_API_KEY": ADMIN_TOKEN,
            "MODELFORGE_HEARTBEAT_INTERVAL_SECONDS": f"{INTERVAL.total_seconds():g}",
            "MODELFORGE_SWEEP_INTERVAL_SECONDS": f"{INTERVAL.total_seconds():g}",
            "MODELFORGE_TELEMETRY_INTERVAL_SECONDS": "5",
            "MODELFORGE_LOG_LEVEL": "DEBUG",
            "MODELFORGE_LOG_FORMAT": "json",
        }
        if self.broker is not None:
            self.environment["MODELFORGE_REDIS_URL"] = self.broker.url()
        self.environment |= variables
        listen = ["--host", "127.0.0.1", "--port", str(self.port), "--workers-kill-timeout", "2"]
        self.web = self._child("web", [*_WEB, *listen, "modelforge.wsgi:application"])
        self.worker = self._child("worker", [*_WORKER, *_QUIET])

    def as_deployed(self) -> "ControlPlane":
        """With the processes and threads of a web server that is not made for tests."""
        self.web = self._child("web", ["modelforge.web", "--host", "127.0.0.1", "--port", str(self.port)])
        return self

    def start(self) -> "ControlPlane":
        """Start both and wait until the control plane says that it is ready."""
        self.web.start()
        self.worker.start()
        until(self._ready, f"the control plane is ready; {self.folder}", within=60)
        return self

    def stop(self) -> None:
        """End both."""
        self.web.stop()
        self.worker.stop()

    def kill_worker(self) -> None:
        """End the worker, and the scheduler in it, without a warning."""
        assert self.worker.process is not None
        os.killpg(self.worker.process.pid, signal.SIGKILL)
        self.worker.process.wait()

    def remove(self) -> None:
        """End everything."""
        self.stop()
        self._session.close()
        if self.broker is not None:
            self.broker.remove()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        """One request with the admin token."""
        headers = self.headers | options.pop("headers", {})
        return self._session.request(method, self.url + path, json=body, headers=headers, timeout=20, **options)

    def get(self, path: str) -> Any:
        """What a reader is told."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        """An operator's verb that succeeds."""
        answer = self.call("POST", path, body)
        assert answer.ok, answer.text
        return answer.json()

    def invite(self, **said: Any) -> str:
        """A new enrollment token."""
        token: str = self.post("/api/v1/admin/node-enrollments", **said)["token"]
        return token

    def node(self, id: UUID | str) -> dict[str, Any]:
        """One node as REST tells it."""
        found: dict[str, Any] = self.get(f"/api/v1/hardware/nodes/{id}")
        return found

    def nodes(self) -> list[dict[str, Any]]:
        """The list."""
        found: list[dict[str, Any]] = self.get("/api/v1/hardware/nodes")["results"]
        return found

    def events(self, *types: str, node: UUID | str | None = None) -> list[dict[str, Any]]:
        """The history oldest first: of these types and about this node, where they are named."""
        wanted = "".join(f"&type={type}" for type in types) + (f"&node={node}" if node else "")
        answer = self.call("GET", f"/api/v1/audit-events?format=ndjson{wanted}")
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def manage(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """One management command, run to its end."""
        return _manage(self.environment, *arguments, stdin=stdin)

    @property
    def log(self) -> str:
        """All that both processes said."""
        return "".join(child.log.read_text() for child in (self.web, self.worker) if child.log.exists())

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """One statement on the control plane's own database, past the control plane; its rows."""
        if POSTGRES:
            with psycopg.connect(self._database, autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        path = self._database.removeprefix("sqlite:///")
        file = sqlite3.connect(path, timeout=20)
        try:
            with file:
                return file.execute(statement).fetchall()
        finally:
            file.close()

    def tables(self) -> list[str]:
        """The names of all tables."""
        if POSTGRES:
            found = self.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        else:
            found = self.sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        return [name for (name,) in found]

    def swept_at(self) -> datetime:
        """When the last sweep ran."""
        ((at,),) = self.sql("SELECT swept_at FROM nodes_controlplane")
        found: datetime = datetime.fromisoformat(at) if isinstance(at, str) else at
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def put_back(self, table: str, columns: Sequence[str], by: timedelta) -> None:
        """Move instants into the past, as if the control plane had been away for so long."""
        seconds = by.total_seconds()
        moved = "{0} = {0} - interval '{1} seconds'"
        if not POSTGRES:
            moved = "{0} = strftime('%Y-%m-%d %H:%M:%f', {0}, '-{1} seconds')"
        self.sql(f"UPDATE {table} SET {', '.join(moved.format(column, seconds) for column in columns)}")  # noqa: S608

    def _child(self, name: str, command: Sequence[str]) -> Child:
        return Child(name, [sys.executable, "-m", *command], self.environment, self.folder / f"{name}.log", ROOT)

    def _ready(self) -> bool:
        for child in (self.web, self.worker):
            assert child.died is None, f"{child.name} ended: {child.log.read_text()[-3000:]}"
        try:
            return self._session.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except requests.RequestException:
            return False


def instant(text: str) -> datetime:
    """An instant as REST tells it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _environment(folder: Path, database: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "modelforge.settings",
        "MODELFORGE_VAR_DIR": str(folder / "var"),
        "MODELFORGE_SECRET_KEY": "the-secret-key-of-a-walk-0123456789-0123456789-0123456789",
        "MODELFORGE_DATABASE_URL": database,
    }


def _manage(environment: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=environment,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _copy_of_the_template(folder: Path) -> str:
    """A fresh database with all tables; its address."""
    template = _template()
    if POSTGRES:
        name = f"walk_{os.getpid()}_{next(_numbers)}"
        return _create(name, f'TEMPLATE "{template.rpartition("/")[2]}"')
    path = folder / "walk.sqlite3"
    path.write_bytes(Path(template.removeprefix("sqlite:///")).read_bytes())
    return f"sqlite:///{path}"


@functools.cache
def _template() -> str:
    """An empty database, migrated once and copied often."""
    assert Started.folder is not None
    folder = Started.folder / "template"
    folder.mkdir()
    database = _create(f"template_{os.getpid()}") if POSTGRES else f"sqlite:///{folder / 'walk.sqlite3'}"
    done = _manage(_environment(folder, database), "migrate", "--verbosity=0", "--no-input")
    assert done.returncode == 0, done.stderr
    if not POSTGRES:
        file = sqlite3.connect(database.removeprefix("sqlite:///"))
        file.execute("PRAGMA journal_mode=DELETE")  # so that the one file is all of it
        file.close()
    return database


def _create(name: str, how: str = "") -> str:
    port = os.environ[ADDRESSES].split()[0]
    server = f"postgresql://postgres@127.0.0.1:{port}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {how}'.encode())
    return f"{server}/{name}"
