"""A stand-in Hub for one test."""

from collections.abc import Iterator

import pytest

from tests.hub.hub import Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    """Over plain HTTP on loopback."""
    with Hub() as made:
        yield made
