"""The verbs on a node's page call the acts, and show their refusals in plain words."""

from collections.abc import Callable

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from nodes.audit import events
from nodes.models import Node
from tests.nodes import browsing
from tests.nodes.browsing import page_of, verb_of, words

pytestmark = pytest.mark.django_db

REVISION = {"display_name": "server09", "role": "lab", "labels": "site=office\nrack = a1\n", "lab_eligible": "on"}


def test_disabling_says_why_and_leads_back(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    response = mara.post(verb_of(node, "disable"), {"reason": "fan replacement"})
    assert response.status_code == 302
    assert response["Location"] == page_of(node)
    assert Node.objects.get().enabled_reason == "fan replacement"
    event = events().get()
    assert (event.type, event.actor_label, event.details["reason"]) == ("node.disabled", "mara", "fan replacement")


def test_the_history_knows_from_where_and_under_which_request(mara: Client, make_node: Callable[..., Node]) -> None:
    mara.post(verb_of(make_node(), "disable"), {"reason": "x"}, REMOTE_ADDR="192.0.2.9", HTTP_X_REQUEST_ID="abc-1")
    event = events().get()
    assert (event.address, event.request_id) == ("192.0.2.9", "abc-1")


def test_disabling_without_a_reason_asks_for_one(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    response = mara.post(verb_of(node, "disable"), {"reason": "  "})
    assert response.status_code == 422
    assert "This field is required" in words(response)
    assert Node.objects.get().enabled


def test_enabling_needs_no_reason(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node(enabled=False, enabled_reason="fan")
    assert mara.post(verb_of(node, "enable"), {}).status_code == 302
    assert Node.objects.get().enabled


def test_a_refusal_is_told_on_the_form(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    response = mara.post(verb_of(node, "enable"), {})
    assert response.status_code == 422
    assert "is enabled already" in words(response)
    assert not events().exists()


def test_retiring_takes_a_node_off_the_list_but_not_its_page(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node(display_name="old-server")
    mara.post(verb_of(node, "retire"), {"reason": "sold"})
    list(get_messages(mara.get("/admin/").wsgi_request))  # the word of success names it, and is shown once
    assert "old-server" not in words(mara.get("/admin/nodes/node/"))
    assert "old-server" in words(mara.get("/admin/nodes/node/?service=retired"))
    page = words(mara.get(page_of(node)))
    assert "410 node_retired" in page
    assert verb_of(node, "enable") not in mara.get(page_of(node)).content.decode()


def test_clearing_a_conflict_takes_its_flag_down(mara: Client, make_node: Callable[..., Node], now: object) -> None:
    node = make_node(identity_conflict_at=now, identity_conflict={"address": "192.0.2.66"})
    assert "Clear conflict" in words(mara.get(page_of(node)))
    mara.post(verb_of(node, "clear_conflict"), {"reason": "copy is wiped"})
    assert Node.objects.get().identity_conflict_at is None
    assert "Clear conflict" not in words(mara.get(page_of(node)))


def test_the_edit_form_shows_what_stands(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node(display_name="server01", labels={"site": "office"}, lab_eligible=True)
    form = mara.get(verb_of(node, "edit")).context["form"]
    assert form.initial["display_name"] == "server01"
    assert form["labels"].value() == "site=office"


def test_an_edit_revises_the_node(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    assert mara.post(verb_of(node, "edit"), REVISION | {"version": node.version}).status_code == 302
    node = Node.objects.get()
    assert (node.display_name, node.role, node.labels) == ("server09", "lab", {"site": "office", "rack": "a1"})
    assert (node.production_eligible, node.lab_eligible) == (False, True)


def test_an_edit_of_an_older_version_is_refused_in_plain_words(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node(display_name="server01")
    Node.objects.update(version=node.version + 1)
    response = mara.post(verb_of(node, "edit"), REVISION | {"version": node.version})
    assert response.status_code == 422
    assert "somebody changed it meanwhile" in words(response)
    assert Node.objects.get().display_name == "server01"


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ("site office", "Line 1 has no “=”"),
        ("a=1\na=2", "Line 2 names 'a' again"),
        ("si te=x", "si te: Name a label with"),
        ("site=" + "x" * 256, "at most 255 characters"),
    ],
)
def test_a_label_at_fault_is_named(labels: str, fault: str, mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    response = mara.post(verb_of(node, "edit"), REVISION | {"version": node.version, "labels": labels})
    assert response.status_code == 422
    assert fault in words(response)


def test_a_verb_on_an_unknown_node_is_not_found(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node()
    to = verb_of(node, "disable")
    node.delete()
    assert mara.post(to, {"reason": "x"}).status_code == 404


def test_a_verb_needs_the_forms_own_token(make_node: Callable[..., Node]) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(browsing.person("mara", "Operators"))
    assert strict.post(verb_of(make_node(), "disable"), {"reason": "x"}).status_code == 403
    assert Node.objects.get().enabled
