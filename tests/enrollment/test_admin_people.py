"""The pages of people: operators keep accounts, auditors look on, and the history hears of every change."""

from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from enrollment import accounts
from nodes.audit import events
from nodes.callers import AUDITORS, OPERATORS, Caller, Refused, Role
from tests.nodes import browsing
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db

LIST = "/admin/auth/user/"
ADD = f"{LIST}add/"
FORM = {"name": "nina", "role": "auditor", "password": "a rather long phrase"}


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
    assert mara.post(change(otto), {"role": "operator", "active": "on"}).status_code == 302
    event = events()[0]
    assert (event.type, event.about_label, event.actor_label) == ("person.changed", "otto", "mara")
    assert event.details["fields"] == ["role"]
    assert event.details["groups"] == [OPERATORS]
    assert "Nothing was changed" in words(mara.post(change(otto), {"role": "operator", "active": "on"}, follow=True))
    assert events()[0].position == event.position


def test_a_person_s_page_shows_nothing_of_the_password(mara: Client) -> None:
    otto = browsing.person("otto")
    seen = mara.get(change(otto)).content.decode()
    assert "otto" in seen
    assert f"{LIST}{otto.pk}/password/" in seen
    assert "Acts as nothing Active yes Last login never" in words(mara.get(change(otto)))
    for part in otto.password.split("$"):
        assert f">{part}" not in seen
        assert f"{part[:6]}*" not in seen


@pytest.mark.parametrize(
    ("said", "told"),
    [({"role": "operator"}, "You cannot deactivate yourself"), ({"role": "auditor", "active": "on"}, "from yourself")],
)
def test_an_operator_does_not_put_themselves_out(said: dict[str, str], told: str, mara: Client) -> None:
    browsing.person("nina", OPERATORS)
    self = User.objects.get(username="mara")
    response = mara.post(change(self), said)
    assert response.status_code == 422
    assert told in words(response)
    assert User.objects.filter(username="mara", is_active=True, groups__name=OPERATORS).exists()


def test_another_operator_may_be_deactivated_but_not_the_last(mara: Client, operator: Caller, now: datetime) -> None:
    nina = browsing.person("nina", OPERATORS)
    assert mara.post(change(nina), {"role": "operator"}).status_code == 302
    nina.refresh_from_db()
    assert not nina.is_active
    last = User.objects.get(username="mara")
    with pytest.raises(Refused, match="last active operator"):  # by the admin token, which is nobody's account
        accounts.revise(last, role=Role.AUDITOR, active=True, by=operator, now=now)


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
    mara.post(change(otto), {"role": "operator", "active": "on", "is_superuser": "on"})
    otto.refresh_from_db()
    assert not otto.is_superuser


def test_an_operator_changes_no_superuser(mara: Client) -> None:
    root = browsing.person("root", superuser=True)
    assert mara.post(change(root), {"role": "auditor"}).status_code == 403
    assert mara.post(f"{LIST}{root.pk}/password/", {}).status_code == 403


def test_an_auditor_looks_on(mara: Client) -> None:
    otto, audrey = browsing.person("otto"), browsing.an_auditor()
    assert audrey.get(change(otto)).status_code == 200
    assert audrey.post(change(otto), {"role": "auditor"}).status_code == 403
    assert audrey.post(f"{LIST}{otto.pk}/password/", {}).status_code == 403


def test_nobody_is_deleted(mara: Client) -> None:
    otto = browsing.person("otto")
    assert browsing.a_superuser().post(f"{LIST}{otto.pk}/delete/", {"post": "yes"}).status_code == 403
