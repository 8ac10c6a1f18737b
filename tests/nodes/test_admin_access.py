"""Who may open the pages and act on them: operators act, auditors read, others are turned away."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from nodes.audit import events
from nodes.models import AuditEvent, Node
from tests.nodes import browsing
from tests.nodes.browsing import page_of, verb_of, words

pytestmark = pytest.mark.django_db

LISTS = [
    "admin:index",
    "admin:nodes_node_changelist",
    "admin:nodes_auditevent_changelist",
    "admin:enrollment_enrollmenttoken_changelist",
    "admin:enrollment_apikey_changelist",
    "admin:auth_user_changelist",
]
VERBS = ["edit", "disable", "enable", "retire", "clear_conflict"]


def test_a_stranger_is_sent_to_the_login(client: Client) -> None:
    response = client.get(reverse("admin:nodes_node_changelist"))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("admin:login"))


def test_the_login_leads_home(client: Client) -> None:
    browsing.person("mara", "Operators")
    response = client.post(reverse("admin:login"), {"username": "mara", "password": browsing.PASSWORD})
    assert response.status_code == 302
    assert response["Location"] == reverse("admin:index")


@pytest.mark.parametrize("name", LISTS)
def test_a_reader_opens_every_list(name: str) -> None:
    assert browsing.an_auditor().get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", LISTS[1:])
def test_staff_in_neither_group_opens_none(name: str) -> None:
    assert browsing.an_outsider().get(reverse(name)).status_code == 403


def test_staff_in_neither_group_learns_nothing_at_home(make_node: Callable[..., Node]) -> None:
    make_node(display_name="secret-server")
    said = words(browsing.an_outsider().get(reverse("admin:index")))
    assert "neither of the groups" in said
    assert "secret-server" not in said


def test_a_nodes_page_is_closed_to_staff_in_neither_group(make_node: Callable[..., Node]) -> None:
    assert browsing.an_outsider().get(page_of(make_node())).status_code == 403


def test_an_auditor_finds_no_verb_on_a_nodes_page(make_node: Callable[..., Node]) -> None:
    node = make_node()
    seen = browsing.an_auditor().get(page_of(node)).content.decode()
    assert not [verb for verb in VERBS if verb_of(node, verb) in seen]
    assert "rotate" not in seen


def test_an_operator_finds_the_verbs_on_a_nodes_page(make_node: Callable[..., Node]) -> None:
    node = make_node()
    seen = browsing.an_operator().get(page_of(node)).content.decode()
    assert [verb for verb in VERBS if verb_of(node, verb) in seen] == ["edit", "disable", "retire"]
    assert reverse("admin:enrollment_nodecredential_rotate", args=[node.pk]) in seen


@pytest.mark.parametrize("name", ["admin:index", "admin:nodes_node_changelist"])
def test_only_an_operator_is_offered_to_enroll(name: str) -> None:
    offered = reverse("admin:enrollment_enrollmenttoken_add")
    assert offered in browsing.an_operator().get(reverse(name)).content.decode()
    assert offered not in browsing.an_auditor().get(reverse(name)).content.decode()


@pytest.mark.parametrize("verb", VERBS)
def test_an_auditor_who_posts_a_verb_is_refused_and_nothing_changes(verb: str, make_node: Callable[..., Node]) -> None:
    node = make_node()
    auditor = browsing.an_auditor()
    said = {"reason": "because", "display_name": "other", "version": node.version}
    assert auditor.post(verb_of(node, verb), said).status_code == 403
    assert auditor.get(verb_of(node, verb)).status_code == 403
    assert Node.objects.get(pk=node.pk).version == node.version
    assert not events().exists()


@pytest.mark.parametrize("name", ["enrollment_enrollmenttoken_add", "enrollment_apikey_add", "auth_user_add"])
def test_an_auditor_makes_nothing(name: str) -> None:
    assert browsing.an_auditor().post(reverse(f"admin:{name}"), {"name": "x"}).status_code == 403
    assert not events().exists()


@pytest.mark.parametrize("verb", ["rotate", "revoke"])
def test_an_auditor_touches_no_credential(verb: str, make_node: Callable[..., Node]) -> None:
    to = reverse(f"admin:enrollment_nodecredential_{verb}", args=[make_node().pk])
    assert browsing.an_auditor().post(to, {"overlap": "0", "reason": "because"}).status_code == 403


@pytest.mark.parametrize("model", ["node", "auditevent"])
def test_not_even_a_superuser_writes_rows_by_the_generic_forms(model: str, make_node: Callable[..., Node]) -> None:
    node, root = make_node(), browsing.a_superuser()
    root.post(verb_of(node, "disable"), {"reason": "because"})
    event = events().get()
    pk = node.pk if model == "node" else event.pk
    assert root.get(reverse(f"admin:nodes_{model}_add")).status_code == 403
    assert root.post(reverse(f"admin:nodes_{model}_change", args=[pk]), {"type": "x"}).status_code == 405
    assert root.post(reverse(f"admin:nodes_{model}_delete", args=[pk]), {"post": "yes"}).status_code == 403
    assert Node.objects.count() == AuditEvent.objects.count() == 1


def test_a_superuser_acts_as_an_operator(make_node: Callable[..., Node]) -> None:
    node = make_node()
    assert browsing.a_superuser().post(verb_of(node, "disable"), {"reason": "because"}).status_code == 302
    assert events().get().actor_role == "operator"


def test_an_inactive_operator_is_out(make_node: Callable[..., Node]) -> None:
    user = browsing.person("mara", "Operators")
    client = browsing.at_the_pages(user)
    user.is_active = False
    user.save()
    assert client.post(verb_of(make_node(), "disable"), {"reason": "because"}).status_code == 302
    assert not events().exists()
