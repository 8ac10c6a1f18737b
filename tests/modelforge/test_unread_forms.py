"""A form that is refused before its view hears why on a page of ModelForge: busy, cut off, or not of our making."""

import io
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import Client

from enrollment.models import EnrollmentToken
from modelforge.bodies import Slots, WholeBody

LOGIN, API, ROOT = "/admin/login/", "/api/v1/admin/node-enrollments", "/"
PASSWORD = "a long password of somebody"
FORM = "application/x-www-form-urlencoded"
PAGE = "text/html; charset=utf-8"

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara() -> Client:
    """A browser with the cookie that the login page gives, of somebody who may log in."""
    User.objects.create_superuser("mara", password=PASSWORD)
    client = Client(enforce_csrf_checks=True)
    client.get(LOGIN)
    return client


def send(
    client: Client, path: str = LOGIN, *, places: int = 1, short: int = 0, **headers: str
) -> tuple[HttpResponseBase, str]:
    """The login form as a server reads it that has so many places, and what is answered."""
    token = client.cookies["csrftoken"].value if "csrftoken" in client.cookies else "x" * 64
    form = urlencode({"csrfmiddlewaretoken": token, "username": "mara", "password": PASSWORD}).encode()
    body = WholeBody(io.BytesIO(form), len(form) + short, Slots(at_once=places))
    environ: dict[str, Any] = {"wsgi.input": body, "CONTENT_LENGTH": str(len(form) + short), "CONTENT_TYPE": FORM}
    answer = client.generic("POST", path, headers=headers, **environ)
    return answer, answer.content.decode()


def order(client: Client, token: str, *, places: int = 1, short: int = 0) -> HttpResponseBase:
    """An enrollment that a session orders, with its CSRF token."""
    headers = {"X-CSRFToken": token} if token else {}
    body = WholeBody(io.BytesIO(b"{}"), 2 + short, Slots(at_once=places))
    environ: dict[str, Any] = {"wsgi.input": body, "CONTENT_LENGTH": str(2 + short), "CONTENT_TYPE": "application/json"}
    return client.generic("POST", API, headers=headers, **environ)


def is_ours(page: str) -> bool:
    """Whether it looks like the other error pages."""
    return "| ModelForge</title>" in page and "nodes/error.css" in page


def test_a_person_whose_form_finds_no_place_is_asked_to_come_back(mara: Client) -> None:
    answer, page = send(mara, places=0)
    assert (answer.status_code, answer["Content-Type"], answer.get("Retry-After")) == (503, PAGE, "5")
    assert "wait 5 seconds" in page
    assert is_ours(page)
    assert send(mara)[0].status_code == 302


def test_a_person_whose_form_was_cut_off_is_told_so(mara: Client) -> None:
    answer, page = send(mara, short=9)
    assert (answer.status_code, answer["Content-Type"], answer.get("Retry-After")) == (400, PAGE, None)
    assert "Only a part of it arrived" in page
    assert is_ours(page)
    assert send(mara)[0].status_code == 302


UNREAD = pytest.mark.parametrize(
    ("places", "short", "told"),
    [(0, 0, (503, "unavailable", "5")), (1, 9, (400, "malformed", None))],
    ids=["busy", "cut"],
)


def problem(answer: Any) -> tuple[int, str, str | None]:
    """What a machine is told."""
    assert answer["Content-Type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"], answer.get("Retry-After")


@UNREAD
def test_a_form_at_the_root_is_answered_with_a_problem(
    places: int, short: int, told: tuple[int, str, str | None], mara: Client
) -> None:
    assert problem(send(mara, ROOT, places=places, short=short)[0]) == told
    assert send(mara, ROOT)[0].status_code == 302


@UNREAD
@pytest.mark.parametrize("sends_token", [True, False], ids=["token", "no-token"])
def test_an_order_of_a_session_that_is_not_read_is_answered_with_a_problem(
    sends_token: bool, places: int, short: int, told: tuple[int, str, str | None], mara: Client
) -> None:
    mara.force_login(User.objects.get())
    token = mara.cookies["csrftoken"].value if sends_token else ""
    assert problem(order(mara, token, places=places, short=short)) == told
    assert not EnrollmentToken.objects.exists()
    assert order(mara, token).status_code == (201 if sends_token else 403)


@pytest.mark.parametrize("path", [API, ROOT], ids=["api", "root"])
def test_outside_the_pages_a_form_of_somebody_elses_is_a_problem(path: str, mara: Client) -> None:
    mara.force_login(User.objects.get())
    del mara.cookies["csrftoken"]
    answer: Any = order(mara, "") if path == API else send(mara, path)[0]
    assert problem(answer) == (403, "forbidden", None)
    assert "CSRF cookie not set" in answer.json()["detail"]


def test_a_person_whose_browser_keeps_no_cookie_hears_the_remedies(mara: Client) -> None:
    stranger = Client(enforce_csrf_checks=True)
    answer, page = send(stranger)
    assert (answer.status_code, answer["Content-Type"]) == (403, PAGE)
    assert is_ours(page)
    for remedy in ("Reload", "cookies", "MODELFORGE_PUBLIC_URL", "CSRF cookie not set."):
        assert remedy in page
    assert send(mara)[0].status_code == 302


def test_a_person_who_came_by_another_address_hears_it_as_text(mara: Client) -> None:
    answer, page = send(mara, Origin="https://<b>else</b>.example")
    assert answer.status_code == 403
    assert "https://&lt;b&gt;else&lt;/b&gt;.example does not match any trusted origins" in page
    assert send(mara, Origin="http://testserver")[0].status_code == 302


@pytest.mark.parametrize(
    ("origin", "places", "loggers"),
    [("http://testserver", 0, []), ("https://else.example", 1, ["django.security.csrf"])],
    ids=["busy", "forged"],
)
def test_only_a_forgery_is_logged_as_one(
    origin: str, places: int, loggers: list[str], mara: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    assert send(mara, places=places, Origin=origin)[0].status_code in (503, 403)
    assert [record.name for record in caplog.records if "Forbidden" in record.getMessage()] == loggers


def test_a_form_that_is_not_understood_is_answered_with_a_page_of_ours(mara: Client) -> None:
    mara.raise_request_exception = False
    answer = mara.post(LOGIN, b"no parts", content_type="multipart/form-data")
    assert answer.status_code == 400
    assert is_ours(answer.content.decode())
