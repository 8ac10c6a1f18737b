"""What every test may ask for; ``tests/parts/start.py`` has started the servers before this is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.cache import cache
from django.db import connections
from django.test import Client
from pytest_django import Settings

from agent.protocol import VERSION, VERSION_HEADER
from nodes import continuity
from nodes.callers import Caller, Role
from nodes.models import Heartbeat, Node
from tests.parts import history
from tests.parts.start import OPERATOR_API_KEY, Started

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every database test sees all databases; one with real transactions finds what the migrations put there."""
    for item in items:
        marker = item.get_closest_marker("django_db")
        fixtures = set(getattr(item, "fixturenames", ()))
        if marker is None and not fixtures & {"db", "transactional_db"}:
            continue
        options: dict[str, Any] = dict(marker.kwargs) if marker else {}
        if "transactional_db" in fixtures:
            options["transaction"] = True
        if options.get("transaction"):
            options["serialized_rollback"] = True
        item.add_marker(pytest.mark.django_db(**options | {"databases": "__all__"}), append=False)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The SQLite test database is a file, as in production, so that threads and processes can meet in it."""
    history.let_tests_flush_it()
    default = connections["default"].settings_dict
    if default["ENGINE"].endswith("sqlite3"):
        default["TEST"]["NAME"] = str(Started.folder / "test.sqlite3") if Started.folder else None


@pytest.fixture(autouse=True)
def _fresh(request: pytest.FixtureRequest, settings: Settings) -> Iterator[None]:
    """Nothing is remembered from the test before; a test in one transaction beats through that very transaction."""
    cache.clear()
    continuity.forget_grant()
    marker = request.node.get_closest_marker("django_db")
    real_transactions = marker is not None and marker.kwargs.get("transaction")
    if not real_transactions:
        settings.BEATS_DATABASE = "default"
    yield
    if real_transactions and "beats" in connections.settings:
        connections["beats"].close()


@pytest.fixture
def now() -> datetime:
    """A fixed instant to count from."""
    return NOW


@pytest.fixture
def operator() -> Caller:
    """Somebody who may act."""
    return Caller(kind="admin_token", role=Role.OPERATOR, id="admin-token", label="admin token", address="192.0.2.1")


@pytest.fixture
def auditor() -> Caller:
    """Somebody who may only read."""
    return Caller(kind="api_key", role=Role.AUDITOR, id="auditor-key", label="auditor", address="192.0.2.2")


@pytest.fixture
def api() -> Client:
    """A client that speaks as the operator with the admin token."""
    return Client(headers={"X-ModelForge-Admin-Token": OPERATOR_API_KEY})


@pytest.fixture
def stranger() -> Client:
    """A client that shows no credential."""
    return Client()


@pytest.fixture
def make_node(db: None, now: datetime) -> Callable[..., Node]:
    """Node rows that were never heard from, without a credential: for acts that need no more."""

    def make(**fields: Any) -> Node:
        name = fields.pop("display_name", f"server-{Node.objects.count() + 1:02}")
        node = Node.objects.create(
            **{"display_name": name, "hostname": name, "enrolled_at": now, "updated_at": now} | fields
        )
        Heartbeat.objects.create(node=node)
        return node

    return make


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A node that enrolled through the real acts, and the credential that it was told."""

    node: Node
    credential: str
    token: str

    @property
    def id(self) -> UUID:
        """Its id."""
        return self.node.pk

    @property
    def headers(self) -> dict[str, str]:
        """What its agent sends with each request."""
        return {"Authorization": f"Bearer {self.credential}", VERSION_HEADER: str(VERSION)}


@pytest.fixture
def enrolled_node(db: None, now: datetime, operator: Caller) -> Callable[..., Enrolled]:
    """Nodes that enrolled a minute before ``now`` through the real acts: invited by the operator, then admitted."""
    from agent import wire
    from enrollment import admission

    def enroll(display_name: str = "server01", *, at: datetime | None = None, **invitation: Any) -> Enrolled:
        at = at or now - timedelta(minutes=1)
        wanted = admission.Invitation(display_name=display_name, **invitation)
        _, token = admission.invite(wanted, by=operator, now=at)
        message = wire.Enroll(node_id=uuid4(), boot_id=uuid4(), hostname="server01", agent_version="0.1.0")
        told = admission.admit(message, token, address="192.0.2.10", request_id="", now=at)
        return Enrolled(Node.objects.get(pk=told.node_id), told.credential, token)

    return enroll
