"""``admin/node-enrollments``: how operators and their scripts invite nodes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from enrollment import admission, keys
from enrollment.models import ApiKey, EnrollmentToken
from nodes.audit import events
from nodes.callers import AUDITORS, OPERATORS, Caller
from nodes.models import Node
from tests.enrollment.asking import admit, invited

pytestmark = pytest.mark.django_db

URL = "/api/v1/admin/node-enrollments"
THE_DOCUMENTS = (
    '{"expires_in_seconds":900,"display_name":"server01","role":"primary-inference","labels":{"site":"office"},'
    '"production_eligible":false,"lab_eligible":true,"benchmark_eligible":true}'
)


def invite(client: Client, body: Any = None, **extra: Any) -> Any:
    """What an operator's script sends."""
    text = body if isinstance(body, str) else json.dumps(body or {})
    return client.post(URL, text, content_type="application/json", **extra)


@pytest.fixture
def auditor_api(operator: Caller) -> Client:
    """A client that speaks with an auditor's key."""
    _, text = keys.create("reports", ApiKey.Role.AUDITOR, None, by=operator, now=datetime.now(UTC))
    return Client(headers={"X-ModelForge-Admin-Token": text})


def test_the_request_of_the_mission_document_is_answered_with_the_secret_once(api: Client) -> None:
    answer = invite(api, THE_DOCUMENTS)
    said = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    assert said["token"].startswith("mfe_")
    assert said["last_four"] == said["token"].split("_")[2][-4:]
    assert {name: said[name] for name in json.loads(THE_DOCUMENTS) if name in said} == {
        name: value for name, value in json.loads(THE_DOCUMENTS).items() if name != "expires_in_seconds"
    }
    left = datetime.fromisoformat(said["expires_at"]) - datetime.now(UTC)
    assert timedelta(seconds=890) < left <= timedelta(seconds=900)
    assert admit(said["token"], datetime.now(UTC)).display_name == "server01"


def test_an_empty_body_invites_any_node_for_a_quarter_of_an_hour(api: Client) -> None:
    said = invite(api).json()
    assert (said["state"], said["display_name"], said["labels"]) == ("open", "", {})
    assert (said["production_eligible"], said["lab_eligible"], said["benchmark_eligible"]) == (False, False, False)
    left = datetime.fromisoformat(said["expires_at"]) - datetime.fromisoformat(said["created_at"])
    assert left == timedelta(seconds=900)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"expires_in_seconds": 59}, "expires_in_seconds"),
        ({"expires_in_seconds": 604801}, "expires_in_seconds"),
        ({"expires_in_seconds": "soon"}, "expires_in_seconds"),
        ({"expires_in_seconds": None}, "expires_in_seconds"),
        ({"display_name": "x" * 256}, "display_name"),
        ({"display_name": "a\x00b"}, "display_name"),
        ({"display_name": ["a"]}, "display_name"),
        ({"labels": ["a"]}, "labels"),
        ({"labels": {"site": {"a": 1}}}, "labels.site"),
        ({"labels": {"a\x00": "b"}}, "labels.a\x00"),
        ({"labels": {"site": "b\x00"}}, "labels.site"),
        ({"production_eligible": "perhaps"}, "production_eligible"),
        ({"expires_in": 900}, "expires_in"),
        ([], ""),
    ],
)
def test_what_is_out_of_shape_is_named(body: Any, field: str, api: Client) -> None:
    answer = invite(api, json.dumps(body))
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid"
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert all(error["detail"] for error in answer.json()["errors"])
    assert not EnrollmentToken.objects.exists()


def test_a_body_that_is_no_json_is_malformed(api: Client) -> None:
    answer = invite(api, "{")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


def test_the_same_key_and_body_make_one_token_and_replay_no_secret(api: Client) -> None:
    headers = {"Idempotency-Key": "once"}
    first, second = (invite(api, THE_DOCUMENTS, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 409)
    assert second.json()["code"] == "secret_not_replayed"
    assert first.json()["token"] not in second.content.decode()
    assert EnrollmentToken.objects.count() == 1


def test_the_same_key_with_another_body_is_a_mistake(api: Client) -> None:
    headers = {"Idempotency-Key": "once"}
    invite(api, THE_DOCUMENTS, headers=headers)
    answer = invite(api, {}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_mismatch")


def test_a_refused_request_does_not_spend_its_key(api: Client) -> None:
    headers = {"Idempotency-Key": "once"}
    assert invite(api, {"role": "x" * 65}, headers=headers).status_code == 400
    assert invite(api, {"role": "x"}, headers=headers).status_code == 201


def test_no_secret_is_read_again(api: Client) -> None:
    made = invite(api, THE_DOCUMENTS).json()
    detail, listed = api.get(f"{URL}/{made['id']}"), api.get(URL)
    assert detail.json() == {name: value for name, value in made.items() if name != "token"}
    assert listed.json()["results"] == [detail.json()]
    assert made["token"].split("_")[2] not in detail.content.decode() + listed.content.decode()


def test_the_list_is_paged_newest_first(api: Client, operator: Caller) -> None:
    start = datetime.now(UTC)
    made = [str(invited(operator, start + timedelta(seconds=n))[0].pk) for n in range(3)]
    first = api.get(URL, {"page_size": 2}).json()
    second = api.get(URL, {"page_size": 2, "page": 2}).json()
    assert (first["count"], len(first["results"])) == (3, 2)
    assert [token["id"] for token in first["results"] + second["results"]] == made[::-1]


@pytest.mark.parametrize("state", ["open", "used", "expired", "revoked"])
def test_the_list_is_filtered_by_state(state: str, api: Client, operator: Caller) -> None:
    now = datetime.now(UTC)
    rows = {name: invited(operator, now) for name in ("open", "used", "revoked")}
    rows["expired"] = invited(operator, now - timedelta(hours=1))
    admit(rows["used"][1], now)
    admission.revoke(rows["revoked"][0], by=operator, now=now)
    found = api.get(URL, {"state": state}).json()["results"]
    assert [(token["id"], token["state"]) for token in found] == [(str(rows[state][0].pk), state)]
    assert (found[0]["node_id"] is not None) == (state == "used")


@pytest.mark.parametrize("query", [{"state": "lost"}, {"stat": "open"}, {"page_size": "201"}, {"page": "0"}])
def test_a_query_that_we_do_not_understand_is_named(query: dict[str, str], api: Client) -> None:
    answer = api.get(URL, query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert [error["field"] for error in answer.json()["errors"]] == list(query)


def test_the_list_costs_the_same_however_long_it_is(
    api: Client, operator: Caller, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        invited(operator, datetime.now(UTC))
    with django_assert_max_num_queries(2):
        assert api.get(URL).json()["count"] == 20


def test_a_revoked_token_is_told_as_revoked(api: Client) -> None:
    made = invite(api).json()
    answer = api.post(f"{URL}/{made['id']}/revoke", {"reason": "wrong site"}, content_type="application/json")
    assert (answer.status_code, answer.json()["state"]) == (200, "revoked")
    assert events()[0].details["reason"] == "wrong site"


def test_a_used_token_is_not_revoked(api: Client) -> None:
    made = invite(api).json()
    admit(made["token"], datetime.now(UTC))
    answer = api.post(f"{URL}/{made['id']}/revoke", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


def test_a_token_that_is_not_there_is_not_found(api: Client) -> None:
    answer = api.get(f"{URL}/00000000-0000-0000-0000-000000000000")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_stranger_hears_that_a_credential_is_needed(stranger: Client, db: None) -> None:
    for answer in (stranger.get(URL), invite(stranger, THE_DOCUMENTS)):
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert not EnrollmentToken.objects.exists()


def test_an_auditors_key_reads_and_invites_nobody(auditor_api: Client) -> None:
    assert auditor_api.get(URL).status_code == 200
    answer = invite(auditor_api, THE_DOCUMENTS)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert not EnrollmentToken.objects.exists()


@pytest.mark.parametrize(("group", "status"), [(OPERATORS, 201), (AUDITORS, 403), (None, 403)])
def test_a_person_invites_as_their_group_allows(group: str | None, status: int, db: None) -> None:
    user = User.objects.create_user("ada", is_staff=True)
    if group is not None:
        user.groups.add(Group.objects.get(name=group))
    client = Client()
    client.force_login(user)
    assert invite(client, THE_DOCUMENTS).status_code == status


def test_a_session_without_its_csrf_token_invites_nobody(db: None) -> None:
    user = User.objects.create_superuser("root")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert invite(client, THE_DOCUMENTS).status_code == 403
    assert not Node.objects.exists()
