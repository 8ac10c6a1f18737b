"""What tests of pages and REST begin with: doors read the clock, so rows are made against it."""

from datetime import UTC, datetime

import pytest

from artifacts.models import StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import a_root
from tests.nodes.hearing import Agent


@pytest.fixture
def now() -> datetime:
    """As the doors read it."""
    return datetime.now(UTC)


@pytest.fixture
def node(now: datetime) -> Node:
    """A server that was heard just now."""
    node = a_server()
    Agent(node).beat(now)
    return node


@pytest.fixture
def root(node: Node, now: datetime) -> StorageRoot:
    """Its verified root."""
    return a_root(node, now)
