"""What many tests of models begin with: a proven root, the agent of its node, an operator's browser."""

import pytest
from django.test import Client

from artifacts.models import StorageRoot
from tests.artifacts.ordering import Worker, a_root, a_server
from tests.nodes import browsing


@pytest.fixture
def root() -> StorageRoot:
    """A proven root."""
    return a_root(a_server())


@pytest.fixture
def worker(root: StorageRoot) -> Worker:
    """The agent of its node."""
    return Worker(root.node)


@pytest.fixture
def mara() -> Client:
    """An operator's browser."""
    return browsing.an_operator()
