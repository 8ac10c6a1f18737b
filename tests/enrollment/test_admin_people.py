"""The pages of people: operators keep accounts, auditors look on, and the history hears of every change."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from nodes.audit import events
from nodes.callers import AUDITORS, OPERATORS
from tests.nodes import browsing
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db

LIST = "/admin/auth/user/"
ADD = f"{LIST}add/"
FORM = {"name": "nina", "role": "auditor", "password": "a rather long phrase"}


@pytest.fixture
def mara() -> Client:
    """An operator's browser."""
    return browsing.an_operator()


def change(user: User) -> str:
    """A person's page."""
    return f"{LIST}{user.pk}/change/"


def test_a_person_who_was_added_may_log_in_and_is_told_of(mara: Client) -> None:
    assert mara.post(ADD, FORM).status_code == 302
    nina = User.objects.get(username="nina")
    assert [group.name for group in nina.groups.all()] == [AUDITORS]
    assert Client().post("/admin/login/", {"username": "nina", "password": FORM["password"]}).status_code == 302
    assert events()[0].type == "person.created"


def test_a_weak_password_is_refused_beside_its_field_and_not_shown_again(mara: Client) -> None:
    response = mara.post(ADD, FORM | {"password": "zq7-short"})
    assert response.status_code == 422
    assert response.context["form"].errors["password"]
    assert "zq7-short" not in response.content.decode()
    assert not User.objects.filter(username="nina").exists()


def test_the_list_says_as_what_each_acts(mara: Client) -> None:
    browsing.person("audrey", AUDITORS)
    browsing.person("otto")
    browsing.person("root", superuser=True)
    said = words(mara.get(LIST))
    assert all(shown in said for shown in ("audrey auditor", "mara operator", "otto nothing", "root superuser"))


def test_a_change_is_told_with_the_fields_names(mara: Client) -> None:
    otto = browsing.person("otto")
    operators = Group.objects.get(name=OPERATORS)
    said = {"username": "otto", "is_active": "on", "is_staff": "on", "groups": [operators.pk]}
    assert mara.post(change(otto), said).status_code == 302
    event = events()[0]
    assert (event.type, event.about_label, event.actor_label) == ("person.changed", "otto", "mara")
    assert event.details["fields"] == ["Groups"]
    assert event.details["groups"] == [OPERATORS]


def test_a_new_password_is_told_without_it(mara: Client) -> None:
    otto = browsing.person("otto")
    word = "another long phrase"
    said = {"password1": word, "password2": word, "usable_password": "true"}
    assert mara.post(f"{LIST}{otto.pk}/password/", said).status_code == 302
    otto.refresh_from_db()
    assert otto.check_password(word)
    event = events()[0]
    assert event.type == "person.changed"
    assert word not in str(event.details)


def test_an_operator_makes_no_superuser(mara: Client) -> None:
    otto = browsing.person("otto")
    mara.post(change(otto), {"username": "otto", "is_active": "on", "is_staff": "on", "is_superuser": "on"})
    otto.refresh_from_db()
    assert not otto.is_superuser


def test_an_operator_changes_no_superuser(mara: Client) -> None:
    root = browsing.person("root", superuser=True)
    assert mara.post(change(root), {"username": "gone"}).status_code == 403
    assert mara.post(f"{LIST}{root.pk}/password/", {}).status_code == 403


def test_an_auditor_looks_on(mara: Client) -> None:
    otto, audrey = browsing.person("otto"), browsing.an_auditor()
    assert audrey.get(change(otto)).status_code == 200
    assert audrey.post(change(otto), {"username": "gone"}).status_code == 403
    assert audrey.post(f"{LIST}{otto.pk}/password/", {}).status_code == 403


def test_nobody_is_deleted(mara: Client) -> None:
    otto = browsing.person("otto")
    assert browsing.a_superuser().post(f"{LIST}{otto.pk}/delete/", {"post": "yes"}).status_code == 403
