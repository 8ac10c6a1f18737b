"""``admin/nodes/{id}/credential``: rotation and revocation by REST."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from enrollment import keys
from enrollment.models import ApiKey, NodeCredential
from nodes.audit import events
from nodes.callers import Caller
from tests.conftest import Enrolled
from tests.enrollment.asking import beat, identify, states

pytestmark = pytest.mark.django_db


@pytest.fixture
def used(enrolled_node: Callable[..., Enrolled]) -> Enrolled:
    """A node whose credential is in use."""
    enrolled = enrolled_node(at=datetime.now(UTC))
    identify(enrolled.credential, datetime.now(UTC))
    return enrolled


def ask(client: Client, enrolled: Enrolled, act: str, body: Any = None, **extra: Any) -> Any:
    """What an operator's script sends."""
    url = f"/api/v1/admin/nodes/{enrolled.id}/credential/{act}"
    return client.post(url, json.dumps(body or {}), content_type="application/json", **extra)


def test_a_rotated_credential_is_answered_once_and_works(api: Client, stranger: Client, used: Enrolled) -> None:
    """Field case 14."""
    answer = ask(api, used, "rotate", {"overlap_seconds": 3600, "reason": "yearly"})
    said, boot_id = answer.json(), uuid4()
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert datetime.fromisoformat(said["old_dies_at"]) - datetime.fromisoformat(said["issued_at"]) == timedelta(hours=1)
    assert said["last_four"] == said["credential"].split("_")[2][-4:]
    assert beat(stranger, used.credential, boot_id).status_code == 200
    assert beat(stranger, said["credential"], boot_id, 2).status_code == 200
    refused = beat(stranger, used.credential, boot_id, 3)
    assert (refused.status_code, refused.json()["code"]) == (401, "credential_superseded")


def test_a_rotation_overlaps_a_day_where_nothing_is_said(api: Client, used: Enrolled) -> None:
    said = ask(api, used, "rotate").json()
    assert datetime.fromisoformat(said["old_dies_at"]) - datetime.fromisoformat(said["issued_at"]) == timedelta(days=1)


def test_a_rotation_without_overlap_leaves_no_old_credential(api: Client, used: Enrolled) -> None:
    assert ask(api, used, "rotate", {"overlap_seconds": 0}).json()["old_dies_at"] is None
    assert states(used.id) == ["superseded", "pending"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"overlap_seconds": -1}, "overlap_seconds"),
        ({"overlap_seconds": 2592001}, "overlap_seconds"),
        ({"overlap": 1}, "overlap"),
        ({"reason": "x" * 256}, "reason"),
    ],
)
def test_a_rotation_out_of_bounds_is_named_and_changes_nothing(
    body: Any, field: str, api: Client, used: Enrolled
) -> None:
    answer = ask(api, used, "rotate", body)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (400, [field])
    assert states(used.id) == ["active"]


def test_a_rotation_sent_twice_with_one_key_is_made_once_and_not_replayed(api: Client, used: Enrolled) -> None:
    headers = {"Idempotency-Key": "once"}
    first, second = (ask(api, used, "rotate", headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 409)
    assert second.json()["code"] == "secret_not_replayed"
    assert NodeCredential.objects.count() == 2


def test_a_revoked_credential_has_its_own_code(api: Client, stranger: Client, used: Enrolled) -> None:
    answer = ask(api, used, "revoke", {"reason": "stolen"})
    assert (answer.status_code, answer.json()) == (200, {"node_id": str(used.id), "revoked": 1})
    refused = beat(stranger, used.credential, uuid4())
    assert (refused.status_code, refused.json()["code"]) == (401, "credential_revoked")
    assert events().filter(type="credential.revoked").get().details["reason"] == "stolen"


def test_a_repeated_revocation_says_that_none_was_left(api: Client, used: Enrolled) -> None:
    ask(api, used, "revoke")
    assert ask(api, used, "revoke").json()["revoked"] == 0


@pytest.mark.parametrize("act", ["rotate", "revoke"])
def test_only_operators_change_credentials(act: str, stranger: Client, used: Enrolled, operator: Caller) -> None:
    _, key = keys.create("reports", ApiKey.Role.AUDITOR, None, by=operator, now=datetime.now(UTC))
    auditor = Client(headers={"X-ModelForge-Admin-Token": key})
    assert ask(stranger, used, act).status_code == 401
    assert ask(auditor, used, act).status_code == 403
    assert states(used.id) == ["active"]


@pytest.mark.parametrize("act", ["rotate", "revoke"])
def test_a_node_that_is_not_there_is_not_found(act: str, api: Client, db: None) -> None:
    answer = api.post(f"/api/v1/admin/nodes/{uuid4()}/credential/{act}", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
