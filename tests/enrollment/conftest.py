"""What many tests of trust begin with: an operator's browser."""

import pytest
from django.test import Client

from tests.nodes import browsing


@pytest.fixture
def mara() -> Client:
    """An operator's browser."""
    return browsing.an_operator()
