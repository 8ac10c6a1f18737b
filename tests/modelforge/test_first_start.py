"""What `make up` finds: a login that works or a word how to get in, and a node that an operator holds back."""

import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from modelforge import first_start
from nodes import control
from nodes.callers import Caller
from nodes.models import Node

pytestmark = pytest.mark.django_db

PASSWORD = "a-long-enough-password"


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


@pytest.fixture
def admin(db: None) -> User:
    """The operator that a first start made."""
    assert first_start.login(PASSWORD, "admin") == first_start.Login(PASSWORD)
    return User.objects.get()


def test_a_second_start_tells_the_same_login(admin: User) -> None:
    assert first_start.login(PASSWORD, "admin") == first_start.Login(PASSWORD)


def test_a_password_of_the_operators_own_stays_and_is_not_told_wrongly(admin: User) -> None:
    admin.set_password("of the operator's own")
    admin.save()
    found = first_start.login(PASSWORD, "admin")
    assert found.password == ""
    assert "changepassword admin" in found.held_back
    admin.refresh_from_db()
    assert admin.check_password("of the operator's own")


def test_a_deactivated_operator_stays_so_and_another_can_be_made(admin: User) -> None:
    User.objects.update(is_active=False)
    assert "create_operator NAME" in first_start.login(PASSWORD, "admin").held_back
    assert not User.objects.get().is_active


def test_a_shells_file_leads_to_the_same_agent_and_holds_no_secret(
    tmp_path: Path, make_node: Callable[..., Node]
) -> None:
    var = tmp_path / "the trial's var"
    (var / "agent" / "state").mkdir(parents=True)
    (var / "agent" / "state" / "node-id").write_text(f"{make_node().pk}\n")
    (var / "agent" / "state" / "node-credential").write_text("mfn_stored\n")
    given = {"PATH": "/usr/bin:/bin", "MODELFORGE_AGENT_PROXY": "http://user:s3cret@127.0.0.1:9"}
    child = first_start.agent(var, "http://127.0.0.1:8123", Path(), given)
    assert child is not None
    file = var / "agent" / "env"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in file.read_text()
    shell = ["sh", "-c", '. "$0"; env', str(file)]
    told = subprocess.run(shell, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True).stdout
    sourced = dict(line.split("=", 1) for line in told.splitlines() if line.startswith("MODELFORGE_"))
    assert sourced["MODELFORGE_AGENT_STATE_DIR"] == str(var / "agent" / "state")
    assert sourced.items() <= dict(child.environment).items()


def test_the_agent_gets_the_hubs_address_and_token_by_their_names_and_nothing_of_a_persons_own(
    tmp_path: Path, make_node: Callable[..., Node]
) -> None:
    var = tmp_path / "var"
    (var / "agent" / "state").mkdir(parents=True)
    (var / "agent" / "state" / "node-id").write_text(f"{make_node().pk}\n")
    (var / "agent" / "state" / "node-credential").write_text("mfn_stored\n")
    ours = {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "MODELFORGE_HF_TOKEN": "hf_themachines",
        "MODELFORGE_AGENT_QUIET_HOURS": "08:00-18:00=10MB",
    }
    theirs = {
        "HF_TOKEN": "hf_apersons",
        "HUGGING_FACE_HUB_TOKEN": "hf_apersons",
        "HF_HUB_OFFLINE": "1",
        "MODELFORGE_OPERATOR_API_KEY": "k",
    }
    child = first_start.agent(var, "http://127.0.0.1:8123", Path(), ours | theirs)
    assert child is not None
    given = dict(child.environment)
    assert ours.items() <= given.items()
    assert not theirs.keys() & given.keys()
    shell = (var / "agent" / "env").read_text()
    assert "export HF_ENDPOINT=http://127.0.0.1:9\n" in shell
    assert "hf_themachines" not in shell
