"""A body that its sender does not finish is refused; what looks complete by chance is not acted upon."""

import io
import threading
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http.response import HttpResponseBase
from django.test import Client

from agent.protocol import ENROLL, HEARTBEAT
from modelforge.bodies import Busy, Slots, WholeBody, whole
from tests.parts.start import OPERATOR_API_KEY

LOGIN, ORDER = "/admin/login/", "/api/v1/admin/node-enrollments"
PASSWORD = "a long password of somebody"


def status(client: Client, path: str, kind: str, sent: bytes, says: int) -> tuple[int, bytes]:
    """What a caller hears who says ``says`` bytes and sends ``sent``, behind what the web server loads."""
    environ: dict[str, Any] = {"wsgi.input": io.BytesIO(sent), "CONTENT_LENGTH": str(says), "CONTENT_TYPE": kind}
    environ["HTTP_X_MODELFORGE_ADMIN_TOKEN"] = OPERATOR_API_KEY if path == ORDER else ""
    list(whole(lambda environ, _: ())(environ, None))
    answer = client.generic("POST", path, **environ)
    return answer.status_code, answer.content


@pytest.mark.django_db
def test_a_form_that_was_cut_off_logs_nobody_in() -> None:
    User.objects.create_user("mara", password=PASSWORD, is_staff=True)
    client = Client(enforce_csrf_checks=True)
    client.get(LOGIN)
    token = client.cookies["csrftoken"].value
    form = urlencode({"csrfmiddlewaretoken": token, "username": "mara", "password": PASSWORD}).encode()
    kind = "application/x-www-form-urlencoded"
    assert status(client, LOGIN, kind, form, len(form) + 20)[0] == 400
    assert status(client, LOGIN, kind, form, len(form))[0] == 302


@pytest.mark.django_db
@pytest.mark.parametrize("sent", [b"", b'{"display', b'{"expires_in_seconds": 60}'], ids=["nothing", "half", "json"])
def test_an_order_that_was_cut_off_is_told_so(sent: bytes, client: Client) -> None:
    code, answer = status(client, ORDER, "application/json", sent, 60)
    assert code == 400
    assert b"before its Content-Length" in answer
    assert status(client, ORDER, "application/json", b'{"expires_in_seconds": 60}', 26)[0] == 201


def test_a_whole_body_is_read_in_pieces_and_by_lines() -> None:
    body = WholeBody(io.BytesIO(b"one\ntwo\nthree, and what the next request says"), 13)
    read = [body.readline(), body.read(2), body.readline(), body.read(), body.read()]
    assert read == [b"one\n", b"tw", b"o\n", b"three", b""]


def test_a_last_line_that_is_cut_off_is_none() -> None:
    body = WholeBody(io.BytesIO(b"one\ntw"), 7)
    assert body.readline() == b"one\n"
    with pytest.raises(OSError, match="ended 1 bytes before"):
        body.readline()


@pytest.mark.parametrize("length", ["", "many", "-1", "٣"])
def test_a_body_whose_length_is_not_told_is_left_alone(length: str) -> None:
    stream = io.BytesIO(b"x")
    environ: dict[str, Any] = {"wsgi.input": stream, "CONTENT_LENGTH": length}

    def read(environ: dict[str, Any], _: object) -> Iterable[bytes]:
        return [environ["wsgi.input"].read()]

    assert list(whole(read)(environ, None)) == ([b""] if not length else [b"x"])


class Slow:
    """A body that comes when it is let."""

    def __init__(self) -> None:
        self.asked, self.comes = threading.Event(), threading.Event()

    def read(self, size: int) -> bytes:
        """All of it, then."""
        self.asked.set()
        self.comes.wait(60)
        return b"x" * size


def read(path: str, stream: object, slots: Slots) -> bytes:
    """What the application reads."""
    environ: dict[str, Any] = {"PATH_INFO": path, "CONTENT_LENGTH": "3", "wsgi.input": stream}
    (body,) = whole(lambda environ, _: [environ["wsgi.input"].read()], slots)(environ, None)
    return body


@pytest.mark.parametrize("path", [LOGIN, ORDER, ENROLL])
def test_so_many_slow_bodies_at_once_and_the_next_hears_it_until_one_came(path: str) -> None:
    slots, slow = Slots(at_once=2), [Slow(), Slow()]
    reading = [threading.Thread(target=read, args=(path, body, slots), daemon=True) for body in slow]
    for thread, body in zip(reading, slow, strict=True):
        thread.start()
        assert body.asked.wait(60)
    with pytest.raises(Busy):
        read(path, io.BytesIO(b"abc"), slots)
    assert read(HEARTBEAT, io.BytesIO(b"abc"), slots) == b"abc"
    slow[0].comes.set()
    reading[0].join(60)
    assert read(path, io.BytesIO(b"abc"), slots) == b"abc"
    slow[1].comes.set()


def test_bodies_that_come_at_once_wait_for_one_another() -> None:
    slots, slow = Slots(at_once=1, patience=timedelta(seconds=60)), Slow()
    threading.Thread(target=read, args=(LOGIN, slow, slots), daemon=True).start()
    assert slow.asked.wait(60)
    threading.Timer(0.1, slow.comes.set).start()
    assert read(LOGIN, io.BytesIO(b"abc"), slots) == b"abc"


@pytest.mark.django_db
def test_who_meets_too_many_slow_bodies_is_asked_to_come_back(client: Client) -> None:
    answer = order(client, WholeBody(_Full(), 2, Slots(at_once=0)))
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5")
    assert order(client, WholeBody(_Full(), 2, Slots(at_once=1))).status_code == 201


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["", "a-key"], ids=["no-key", "idempotency-key"])
def test_a_body_is_read_before_anything_is_locked_for_it(key: str, client: Client) -> None:
    """SQLite has one writer: whoever sends slowly would have held up every beat."""
    body = _Full()
    more = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
    assert order(client, body, **more).status_code == 201
    assert body.locked == [False]


def order(client: Client, body: object, **more: str) -> HttpResponseBase:
    """An order of two bytes that are read from ``body``."""
    environ: dict[str, Any] = {"wsgi.input": body, "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": "2", **more}
    environ["HTTP_X_MODELFORGE_ADMIN_TOKEN"] = OPERATOR_API_KEY
    return client.generic("POST", ORDER, **environ)


class _Full:
    """A body of JSON that notes whether it is read within a transaction."""

    def __init__(self) -> None:
        self.locked: list[bool] = []
        self._stream = io.BytesIO(b"{}")

    def read(self, size: int = -1) -> bytes:
        if data := self._stream.read(size):
            self.locked.append(connection.in_atomic_block)
        return data

    readline = read
