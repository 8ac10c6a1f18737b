"""A stand-in Hub for one test of the agent's acquisition, a storage root, and an order."""

from pathlib import Path

import pytest

from tests.agent.acquire.acquiring import FILES, REPO
from tests.agent.acquire.attempts import Ordered
from tests.hub.conftest import hub
from tests.hub.hub import Hub

__all__ = ["hub"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A storage root with its marker, and the folders beside it."""
    for name in ("root", "quarantine", "hf-cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "root/.modelforge-root").write_text("{}")
    return tmp_path / "root"


@pytest.fixture
def ordered(hub: Hub, root: Path) -> Ordered:
    """An order of a small repository."""
    return Ordered(hub, root, hub.repo(REPO, FILES))
