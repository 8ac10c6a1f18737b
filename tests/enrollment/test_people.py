"""People and keys by the command line, and the two groups."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import RequestFactory

from enrollment import secrets
from enrollment.models import ApiKey
from nodes.audit import events
from nodes.callers import AUDITORS, OPERATORS
from nodes.event_types import EventType

pytestmark = pytest.mark.django_db

PASSWORD = "a-long-enough-password"


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    """A file with the password and a line's end, as editors leave it."""
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n")
    return str(path)


@pytest.mark.parametrize("name", [OPERATORS, AUDITORS])
def test_a_group_may_see_everything_and_change_nothing(name: str, db: None) -> None:
    held = {permission.codename for permission in Permission.objects.filter(group__name=name)}
    assert {"view_node", "view_auditevent", "view_enrollmenttoken", "view_nodecredential", "view_apikey"} <= held
    assert all(codename.startswith("view_") for codename in held)


@pytest.mark.parametrize(("command", "group"), [("create_operator", OPERATORS), ("create_auditor", AUDITORS)])
def test_a_person_is_made_who_may_log_in(command: str, group: str, password_file: str) -> None:
    call_command(command, "ada", password_file=password_file, stdout=io.StringIO())
    request = RequestFactory().post("/admin/login")
    user = authenticate(request, username="ada", password=PASSWORD)
    assert isinstance(user, User)
    assert (user.is_staff, user.is_superuser, [held.name for held in user.groups.all()]) == (True, False, [group])


def test_a_new_person_is_told_in_the_history(password_file: str) -> None:
    call_command("create_auditor", "ada", password_file=password_file, stdout=io.StringIO())
    event = events().get()
    assert (event.type, event.about_kind, event.about_label) == (EventType.OPERATOR_CREATED, "person", "ada")
    assert (event.details, event.actor_id) == ({"role": "auditor"}, "command-line")


@pytest.mark.parametrize(("name", "password"), [("ada", "short"), ("a b", PASSWORD), ("", PASSWORD), ("ada", "")])
def test_a_bad_name_or_password_makes_nobody(name: str, password: str, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(password)
    with pytest.raises(CommandError):
        call_command("create_operator", name, password_file=str(path))
    assert not User.objects.exists()
    assert not events().exists()


def test_a_name_is_taken_once(password_file: str) -> None:
    call_command("create_operator", "ada", password_file=password_file, stdout=io.StringIO())
    with pytest.raises(CommandError, match="already; take another name, or: manage"):
        call_command("create_operator", "ada", password_file=password_file)


def test_a_deactivated_persons_name_says_what_to_do(password_file: str) -> None:
    call_command("create_operator", "ada", password_file=password_file, stdout=io.StringIO())
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="was deactivated: take another name"):
        call_command("create_operator", "ada", password_file=password_file)


def test_the_password_may_come_through_standard_input(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
    call_command("create_operator", "ada", password_file="-", stdout=io.StringIO())
    assert User.objects.get().check_password(PASSWORD)


def test_without_a_terminal_the_command_says_where_a_password_may_stand(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CommandError, match="--password-file"):
        call_command("create_operator", "ada")


def test_a_password_typed_two_ways_makes_nobody(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    typed = iter([PASSWORD, PASSWORD + "x"])
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(typed))
    with pytest.raises(CommandError, match="differ"):
        call_command("create_operator", "ada")


def test_a_password_file_that_is_not_there_is_named(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nowhere"):
        call_command("create_operator", "ada", password_file=str(tmp_path / "nowhere"))


def test_a_key_made_by_command_is_printed_once_and_works(db: None) -> None:
    out = io.StringIO()
    call_command("create_api_key", "deploy", role="operator", days=1, stdout=out)
    parsed = secrets.parse(out.getvalue().strip(), secrets.Kind.API_KEY)
    key = ApiKey.objects.get()
    assert parsed == secrets.Parsed(key.handle, key.digest)
    assert (key.role, key.expires_at is not None) == ("operator", True)


@pytest.mark.parametrize("said", [{"days": 0}, {"days": 10**9}, {"days": 10**7}])
def test_a_key_that_cannot_end_then_is_not_made(said: dict[str, Any], db: None) -> None:
    with pytest.raises(CommandError):
        call_command("create_api_key", "deploy", role="auditor", **said)
    assert not ApiKey.objects.exists()
