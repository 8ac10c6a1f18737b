"""What the tests of trust share."""

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def _endpoints(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.enrollment.urls"
