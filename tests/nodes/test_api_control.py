"""The operators' verbs by REST: their bodies, their preconditions, who may use them, and what they answer."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from nodes.audit import events
from nodes.callers import AUDITORS, OPERATORS
from nodes.models import Node
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """A node."""
    return make_node(display_name="server01")


def act(client: Client, node: Node, verb: str, body: Any = None) -> Any:
    """The response to a verb."""
    return client.post(f"/api/v1/admin/nodes/{node.pk}/{verb}", body or {}, content_type="application/json")


def revise(client: Client, node: Node, body: Any, **headers: str) -> Any:
    """The response to a PATCH."""
    return client.patch(f"/api/v1/admin/nodes/{node.pk}", body, content_type="application/json", headers=headers)


def fields(response: Any) -> list[str]:
    """The fields at fault."""
    return [error["field"] for error in response.json()["errors"]]


def test_disable_enable_retire_answer_with_the_node_as_it_is_then(api: Client, node: Node) -> None:
    off = act(api, node, "disable", {"reason": "maintenance"})
    assert (off.status_code, off.json()["enabled"], off.json()["enabled_reason"]) == (200, False, "maintenance")
    assert off["ETag"] == '"2"'
    assert act(api, node, "enable").json()["enabled"] is True
    assert act(api, node, "retire", {"reason": "sold"}).json()["retired"] is True
    assert told() == ["node.disabled", "node.enabled", "node.retired"]
    event = events().first()
    assert event is not None
    assert (event.actor_kind, event.actor_role) == ("admin_token", "operator")
    assert event.request_id


@pytest.mark.parametrize("verb", ["disable", "retire"])
@pytest.mark.parametrize(
    "body", [{}, {"reason": ""}, {"reason": " "}, {"reason": "x" * 256}, {"reason": None}], ids=str
)
def test_a_missing_reason_is_refused_by_name(api: Client, node: Node, verb: str, body: dict[str, Any]) -> None:
    response = act(api, node, verb, body)
    assert (response.status_code, fields(response)) == (400, ["reason"])


def test_an_unknown_field_is_refused_by_name(api: Client, node: Node) -> None:
    response = act(api, node, "disable", {"reason": "x", "until": "tomorrow"})
    assert (response.status_code, fields(response)) == (400, ["until"])


def test_a_verb_that_makes_no_sense_is_a_conflict(api: Client, node: Node) -> None:
    response = act(api, node, "enable")
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")


@pytest.mark.parametrize("verb", ["disable", "enable", "retire"])
def test_a_verb_on_a_node_that_is_none_is_not_found(api: Client, verb: str) -> None:
    assert act(api, Node(), verb, {"reason": "x"}).status_code == 404


def test_a_revision_changes_what_it_names(api: Client, node: Node) -> None:
    body = {"display_name": "tower", "labels": {"site": "office"}, "production_eligible": True}
    response = revise(api, node, body, if_match='"1"')

    shown = response.json()
    assert (response.status_code, response["ETag"]) == (200, '"2"')
    assert (shown["display_name"], shown["labels"], shown["production_eligible"]) == (
        "tower",
        {"site": "office"},
        True,
    )


def test_a_revision_without_a_precondition_is_refused(api: Client, node: Node) -> None:
    response = revise(api, node, {"role": "lab"})
    assert (response.status_code, response.json()["code"]) == (428, "precondition_required")


@pytest.mark.parametrize("tag", ['"7"', "1", 'W/"1"', '"x"', "nonsense"])
def test_a_revision_of_another_version_is_refused(api: Client, node: Node, tag: str) -> None:
    response = revise(api, node, {"role": "lab"}, if_match=tag)
    assert (response.status_code, response.json()["code"]) == (412, "precondition_failed")


@pytest.mark.parametrize("tag", ['"1"', '"7", "1"', "*"])
def test_a_revision_of_the_present_version_is_made(api: Client, node: Node, tag: str) -> None:
    assert revise(api, node, {"role": "lab"}, if_match=tag).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"hostname": "x"}, "hostname"),
        ({"enabled": False}, "enabled"),
        ({"labels": {"a": 1}}, "labels.a"),
        ({"identity_conflict": True, "reason": "x"}, "identity_conflict"),
        ({"reason": "just so"}, "reason"),
        ({"display_name": "a\ud800"}, "display_name"),
    ],
    ids=["hostname", "enabled", "labels", "conflict", "reason", "surrogate"],
)
def test_a_revision_s_fault_is_named(api: Client, node: Node, body: dict[str, Any], field: str) -> None:
    response = revise(api, node, body, if_match='"1"')
    assert (response.status_code, fields(response)) == (400, [field])


def test_a_revision_that_is_no_object_is_refused(api: Client, node: Node) -> None:
    assert revise(api, node, "[1]", if_match='"1"').status_code == 400


def test_a_conflict_is_cleared_with_a_reason(api: Client, node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(identity_conflict_at=datetime.now(UTC), identity_conflict={"boot_id": "x"})
    response = revise(api, node, {"identity_conflict": False, "reason": "copy stopped"}, if_match='"1"')
    assert (response.status_code, response.json()["identity_conflict"]) == (200, False)
    assert told() == ["node.identity_conflict_cleared"]


def test_a_conflict_that_cannot_be_cleared_takes_the_other_changes_back(api: Client, node: Node) -> None:
    response = revise(api, node, {"role": "lab", "identity_conflict": False, "reason": "x"}, if_match='"1"')
    node.refresh_from_db()
    assert (response.status_code, node.role, told()) == (409, "", [])


@pytest.mark.parametrize(("group", "status"), [(OPERATORS, 200), (AUDITORS, 403), (None, 403)])
def test_only_operators_act(node: Node, group: str | None, status: int) -> None:
    person = User.objects.create_user("ada")
    if group:
        person.groups.add(Group.objects.get_or_create(name=group)[0])
    client = Client()
    client.force_login(person)
    assert act(client, node, "disable", {"reason": "x"}).status_code == status
    assert client.get(f"/api/v1/hardware/nodes/{node.pk}").status_code == (403 if group is None else 200)


def test_a_stranger_does_nothing(stranger: Client, node: Node) -> None:
    assert act(stranger, node, "retire", {"reason": "x"}).status_code == 401
    assert revise(stranger, node, {"role": "x"}, if_match="*").status_code == 401
    assert told() == []
