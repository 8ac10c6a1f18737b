"""What `make up` finds about this machine's node: a start must not wait for one that an operator holds back."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from modelforge import first_start
from nodes import control
from nodes.callers import Caller
from nodes.models import Node

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(tmp_path: Path, make_node: Callable[..., Node]) -> Node:
    """The node whose id stands in the agent's state below ``tmp_path``."""
    node = make_node()
    state = tmp_path / "agent" / "state"
    state.mkdir(parents=True)
    (state / "node-id").write_text(f"{node.pk}\n", encoding="ascii")
    return node


def test_nothing_holds_a_node_back_by_itself(tmp_path: Path, node: Node) -> None:
    assert first_start.held_back(tmp_path) == ""


def test_nothing_holds_back_a_machine_that_never_joined(tmp_path: Path) -> None:
    assert first_start.held_back(tmp_path) == ""


def test_a_disabled_node_is_named_with_the_remedy(tmp_path: Path, node: Node, operator: Caller, now: datetime) -> None:
    control.disable(node, reason="maintenance", by=operator, now=now)
    assert "enable it on its page" in first_start.held_back(tmp_path)


def test_a_retired_node_is_named_with_the_remedy(tmp_path: Path, node: Node, operator: Caller, now: datetime) -> None:
    control.retire(node, reason="sold", by=operator, now=now)
    assert str(tmp_path / "agent" / "state") in first_start.held_back(tmp_path)
