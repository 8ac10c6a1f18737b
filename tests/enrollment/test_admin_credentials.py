"""A node's credential on its page: rotated with the new one shown once, revoked with a reason."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from enrollment import credentials, secrets
from enrollment.models import NodeCredential
from nodes.audit import events
from nodes.models import Node
from tests.nodes import browsing
from tests.nodes.browsing import instant, page_of, sent, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(enrolled_node: Callable[..., Any]) -> Node:
    """A node whose first credential is in use."""
    node: Node = enrolled_node(at=instant() - timedelta(minutes=5)).node
    NodeCredential.objects.update(state="active", first_used_at=instant())
    return node


def to(node: Node, verb: str) -> str:
    """The page of a verb on a node's credential."""
    return reverse(f"admin:enrollment_nodecredential_{verb}", args=[node.pk])


def test_the_new_credential_is_shown_in_the_answer_and_may_not_be_kept(mara: Client, node: Node) -> None:
    response = sent(mara, to(node, "rotate"), {"overlap": "3600"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert secrets.parse(response.context["secret"], secrets.Kind.NODE)
    assert "modelforge-agent credential set" in words(response)
    secret = response.context["secret"]
    assert (
        secret not in mara.get(page_of(node)).content.decode() + mara.get("/admin/nodes/auditevent/").content.decode()
    )


def test_the_new_credential_is_first_installed_in_the_agents_container(
    mara: Client, node: Node, settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://modelforge.example"
    said = words(sent(mara, to(node, "rotate"), {"overlap": "3600"}))
    assert said.index("docker compose") < said.index("By hand") < said.index(".venv/bin/python -m agent credential set")


def test_on_the_control_planes_own_machine_it_is_first_installed_by_hand(
    mara: Client, node: Node, settings: Settings
) -> None:
    settings.PUBLIC_URL = "http://localhost:8000"
    said = words(sent(mara, to(node, "rotate"), {"overlap": "3600"}))
    by_hand = said.index("MODELFORGE_AGENT_STATE_DIR=~/modelforge-data/state .venv/bin/python -m agent credential set")
    assert by_hand < said.index("With containers") < said.index("docker compose")


def test_a_rotation_is_pending_until_the_overlap_ends(mara: Client, node: Node) -> None:
    """Field case 14."""
    sent(mara, to(node, "rotate"), {"overlap": "3600", "reason": "yearly"})
    node = Node.objects.get()
    assert node.credential_state == "rotating"
    assert node.rotation_ends_at is not None
    assert timedelta(minutes=59) < node.rotation_ends_at - instant() <= timedelta(hours=1)
    said = words(mara.get(page_of(node)))
    assert "Rotation pending" in said
    assert "Old one dies at the latest" in said
    assert events()[0].details["reason"] == "yearly"


def test_a_rotation_without_overlap_ends_the_old_one_now(mara: Client, node: Node) -> None:
    said = words(sent(mara, to(node, "rotate"), {"overlap": "0"}))
    assert "No other credential of this node works." in said
    assert NodeCredential.objects.filter(state="superseded").count() == 1


def test_a_made_up_overlap_is_refused(mara: Client, node: Node) -> None:
    assert sent(mara, to(node, "rotate"), {"overlap": "7"}).status_code == 422


def test_revoking_needs_a_reason_and_ends_every_credential(mara: Client, node: Node) -> None:
    assert mara.post(to(node, "revoke"), {"reason": ""}).status_code == 422
    assert mara.post(to(node, "revoke"), {"reason": "laptop stolen"}).status_code == 302
    assert set(NodeCredential.objects.values_list("state", flat=True)) == {"revoked"}
    assert "No credential of this node works." in words(mara.get(page_of(node)))


def test_a_retired_node_gets_no_credential(mara: Client, node: Node) -> None:
    Node.objects.update(retired_at=instant())
    response = sent(mara, to(node, "rotate"), {"overlap": "0"})
    assert response.status_code == 422
    assert "A retired node gets no credential." in words(response)
    assert to(node, "rotate") not in mara.get(page_of(node)).content.decode()


def test_an_auditor_sees_where_credentials_stand_but_no_verb(node: Node) -> None:
    response = browsing.an_auditor().get(page_of(node))
    assert f"…{NodeCredential.objects.get().last_four} active enrollment" in words(response)
    assert to(node, "rotate") not in response.content.decode()


def test_credentials_have_no_list(node: Node) -> None:
    assert browsing.a_superuser().get("/admin/enrollment/nodecredential/").status_code == 403


def test_the_card_holds_the_newest_few(mara: Client, node: Node, operator: Any) -> None:
    for _ in range(12):
        credentials.rotate(node, overlap=timedelta(hours=1), by=operator, now=instant())
    assert len(mara.get(page_of(node)).context["panels"][0].table) == 8
