"""Machines are answered with problem+json, whatever goes wrong and wherever; people are given pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings

from agent.protocol import ENROLL, Code
from modelforge import errors, urls

LOST = "postgres went away at 10.0.0.7"


def raising(fault: Exception) -> Callable[[HttpRequest], HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        raise fault

    return view


urlpatterns = [
    *urls.urlpatterns,
    path("api/bug", raising(ZeroDivisionError("the secret cause"))),
    path("api/forbidden", raising(PermissionDenied())),
    path("api/suspicious", raising(SuspiciousOperation("the secret cause"))),
    path("api/long", raising(RequestDataTooBig())),
    path("api/away", raising(OperationalError(LOST))),
    path("api/cut", raising(InterfaceError(LOST))),
]
handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500


@pytest.fixture
def client(settings: Settings) -> Client:
    settings.ROOT_URLCONF = "tests.modelforge.test_errors"
    return Client(raise_request_exception=False)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "status", "code", "retryable"),
    [
        ("/nowhere", 404, "not_found", False),
        ("/api/v1/nowhere", 404, "not_found", False),
        ("/api/v1/hardware/nodes/", 404, "not_found", False),  # no redirect mends a slash
        ("/api/v1/hardware/nodes/no-uuid", 404, "not_found", False),
        ("/api/v1/hardware/nodes", 401, "unauthenticated", False),
        ("/api/bug", 500, "internal", True),
        ("/api/forbidden", 403, "forbidden", False),
        ("/api/suspicious", 400, "malformed", False),
        ("/api/long", 413, "body_too_large", False),
        ("/api/away", 503, "unavailable", True),
        ("/api/cut", 503, "unavailable", True),
    ],
)
def test_a_machine_hears_a_problem(client: Client, address: str, status: int, code: str, retryable: bool) -> None:
    answer = client.get(address, headers={"X-Request-ID": "asked-1"})
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert (said["status"], said["code"], said["retryable"]) == (status, code, retryable)
    assert said["request_id"] == answer["X-Request-ID"] == "asked-1"
    assert "secret cause" not in answer.content.decode()
    assert LOST not in answer.content.decode()


@pytest.mark.parametrize("address", ["/api/away", "/api/cut"])
def test_a_database_that_is_away_asks_to_come_back(client: Client, address: str) -> None:
    assert int(client.get(address)["Retry-After"]) >= 1


@pytest.mark.django_db
def test_a_person_hears_no_json(client: Client) -> None:
    answer = client.get("/admin/login/nowhere/at-all", follow=True)
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.django_db
def test_another_method_is_told_the_right_ones(client: Client) -> None:
    answer = client.delete(ENROLL)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer["Allow"] == "POST"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/admin/node-enrollments", "/nowhere"])
def test_a_body_beyond_any_limit_is_refused_unread(api: Client, path: str) -> None:
    answer = api.post(path, b"x" * (1024 * 1024 + 1), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.django_db
def test_a_body_at_the_limit_is_read(api: Client) -> None:
    body = b'{"display_name": "' + b"x" * (1024 * 1024 - 20) + b'"}'
    answer = api.post("/api/v1/admin/node-enrollments", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_a_host_name_that_is_not_ours_is_named_with_the_remedy() -> None:
    answer = Client().get("/api/v1/hardware/nodes", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "MODELFORGE_ALLOWED_HOSTS" in answer.json()["detail"]
    assert "evil" not in answer.content.decode()


def test_a_probe_is_answered_under_any_host_name() -> None:
    assert Client().get("/healthz", headers={"Host": "172.17.0.3:8000"}).status_code == 200


def test_every_code_has_its_status() -> None:
    assert set(errors.STATUS) == set(Code)


@pytest.mark.parametrize("given", ["", "a" * 65, "with space", "line\nbreak", "<script>"])
def test_a_request_id_that_is_not_plain_is_replaced(given: str) -> None:
    answer = Client().get("/healthz", headers={"X-Request-ID": given})
    assert len(answer["X-Request-ID"]) == 32
    assert answer["X-Request-ID"] != given


def test_the_root_leads_to_the_pages() -> None:
    answer: Any = Client().get("/")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")


@pytest.mark.django_db
def test_a_page_loads_nothing_from_elsewhere_and_stands_in_no_frame(client: Client) -> None:
    policy = client.get("/admin/login/")["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        (False, "203.0.113.9", "127.0.0.1"),
        (True, "203.0.113.9", "203.0.113.9"),
        (True, "10.6.6.6, 203.0.113.9", "203.0.113.9"),  # the first was said by the client itself
        (True, "no address", "127.0.0.1"),
        (True, "", "127.0.0.1"),
    ],
)
def test_the_clients_address_is_what_our_own_proxy_says(
    trusted: bool, forwarded: str, address: str, settings: Settings
) -> None:
    settings.TRUST_PROXY = trusted
    answer: Any = Client().get("/healthz", headers={"X-Forwarded-For": forwarded})
    assert answer.wsgi_request.META["REMOTE_ADDR"] == address
