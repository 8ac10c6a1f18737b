"""The pytest plugin that starts the real servers, and says where they are, before Django reads its settings.

``MODELFORGE_TEST_DATABASE`` chooses the pair: ``postgresql`` (with Valkey, the default) or ``sqlite`` (with neither, as
``make up`` runs). Under pytest-xdist the controller starts them once and its workers inherit their addresses.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.parts.postgres import Postgres
from tests.parts.valkey import Valkey

OPERATOR_API_KEY = "the-operator-key-of-the-tests-0123456789"
WORKER = "PYTEST_XDIST_WORKER"
BACKEND = "MODELFORGE_TEST_DATABASE"
ADDRESSES = "MODELFORGE_TEST_SERVERS"  # "<postgres port> <valkey port>", handed from the controller to its workers


class Started:
    """What this process started, and must end."""

    postgres: Postgres | None = None
    valkey: Valkey | None = None
    folder: Path | None = None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the servers and put their addresses where the settings look for them."""
    known = early_config.known_args_namespace
    if getattr(known, "help", False) or getattr(known, "version", False):
        return
    backend = os.environ.get(BACKEND, "postgresql")
    if backend not in {"postgresql", "sqlite"}:
        raise pytest.UsageError(f"{BACKEND} is {backend!r}; say postgresql or sqlite.")
    atexit.register(_end)  # pytest_unconfigure is not called where a conftest cannot be read
    if WORKER not in os.environ:
        _forget_the_developers_settings()
        if backend == "postgresql":
            Started.postgres, Started.valkey = Postgres().start(), Valkey().start()
            os.environ[ADDRESSES] = f"{Started.postgres.port} {Started.valkey.port}"
    Started.folder = Path(tempfile.mkdtemp(prefix="modelforge-tests-"))
    (Started.folder / "static").mkdir()
    number = int(os.environ.get(WORKER, "gw0").removeprefix("gw")) + 1
    os.environ |= {
        "MODELFORGE_VAR_DIR": str(Started.folder),
        "MODELFORGE_QUEUE_DIR": str(Started.folder / "queue"),
        "MODELFORGE_SECRET_KEY": "the-secret-key-of-the-tests-0123456789-0123456789",
        "MODELFORGE_OPERATOR_API_KEY": OPERATOR_API_KEY,
        "MODELFORGE_LOG_FORMAT": "json",
    }
    if backend == "postgresql":
        postgres, valkey = os.environ[ADDRESSES].split()
        os.environ["MODELFORGE_DATABASE_URL"] = f"postgresql://postgres@127.0.0.1:{postgres}/postgres"
        os.environ["MODELFORGE_REDIS_URL"] = f"redis://127.0.0.1:{valkey}/{number}"
    else:
        os.environ["MODELFORGE_DATABASE_URL"] = f"sqlite:///{Started.folder}/modelforge.sqlite3"


def _forget_the_developers_settings() -> None:
    for name in list(os.environ):
        if name.startswith("MODELFORGE_") and name != BACKEND:
            del os.environ[name]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End what was started."""
    _end()


def _end() -> None:
    for server in (Started.postgres, Started.valkey):
        if server is not None:
            server.remove()
    Started.postgres = Started.valkey = None
    if Started.folder is not None:
        shutil.rmtree(Started.folder, ignore_errors=True)
