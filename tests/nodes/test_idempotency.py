"""Creating POSTs sent twice: one thing made, the same answer, and no secret told again."""

import json
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from agent.protocol import Code
from nodes.callers import Caller, Refused
from nodes.idempotency import Made, once, prune
from nodes.models import IdempotentAnswer, Node

pytestmark = pytest.mark.django_db


def asked(body: Any, key: str | None = "key-1", path: str = "/api/v1/admin/things") -> Request:
    """A POST as a view sees it."""
    headers = {} if key is None else {"Idempotency-Key": key}
    raw = APIRequestFactory().post(path, json.dumps(body), content_type="application/json", headers=headers)
    return Request(raw, parsers=[JSONParser()])


class Maker:
    """Makes a node each time it is called, and counts."""

    def __init__(self, make_node: Callable[..., Node], *, secret: bool = False) -> None:
        self.make_node, self.secret = make_node, secret

    def __call__(self) -> Made:
        """Make one."""
        node = self.make_node()
        return Made({"id": node.pk, "at": node.enrolled_at}, created=str(node.pk), secret=self.secret)

    @property
    def made(self) -> int:
        """How many stand in the database."""
        return Node.objects.count()


@pytest.fixture
def maker(make_node: Callable[..., Node]) -> Maker:
    """Makes nodes."""
    return Maker(make_node)


def send(request: Request, maker: Callable[[], Made], by: Caller, now: datetime) -> Response:
    """The answer."""
    return once(request, maker, by=by, now=now)


def as_sent(response: Response) -> Any:
    """The body as JSON."""
    return json.loads(
        json.dumps(
            response.data,
            default=lambda value: (
                value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)
            ),
        )
    )


def test_the_same_request_again_gets_the_same_answer_and_makes_nothing(
    maker: Maker, operator: Caller, now: datetime
) -> None:
    first = send(asked({"a": 1, "b": 2}), maker, operator, now)
    again = send(asked({"b": 2, "a": 1}), maker, operator, now + timedelta(hours=23))

    assert maker.made == 1
    assert (again.status_code, as_sent(again)) == (201, as_sent(first))
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


def test_without_a_key_every_request_makes_something(maker: Maker, operator: Caller, now: datetime) -> None:
    send(asked({}, key=None), maker, operator, now)
    send(asked({}, key=None), maker, operator, now)
    assert (maker.made, IdempotentAnswer.objects.count()) == (2, 0)


def test_another_body_under_the_same_key_is_refused(maker: Maker, operator: Caller, now: datetime) -> None:
    send(asked({"a": 1}), maker, operator, now)
    with pytest.raises(Refused) as caught:
        send(asked({"a": 2}), maker, operator, now)
    assert (caught.value.code, maker.made) == (Code.IDEMPOTENCY_MISMATCH, 1)


@pytest.mark.parametrize("difference", ["caller", "path", "key"])
def test_another_caller_path_or_key_is_another_request(
    maker: Maker, operator: Caller, auditor: Caller, now: datetime, difference: str
) -> None:
    send(asked({}), maker, operator, now)
    by = auditor if difference == "caller" else operator
    path = "/api/v1/admin/others" if difference == "path" else "/api/v1/admin/things"
    key = "key-2" if difference == "key" else "key-1"
    send(asked({}, key=key, path=path), maker, by, now)
    assert maker.made == 2


def test_a_day_later_the_key_is_free_again(maker: Maker, operator: Caller, now: datetime) -> None:
    send(asked({"a": 1}), maker, operator, now)
    answer = send(asked({"a": 2}), maker, operator, now + timedelta(hours=24))
    assert (answer.status_code, maker.made) == (201, 2)


def test_a_secret_is_never_replayed_but_what_it_belongs_to_is_named(
    make_node: Callable[..., Node], operator: Caller, now: datetime
) -> None:
    maker = Maker(make_node, secret=True)
    first = send(asked({}), maker, operator, now)
    with pytest.raises(Refused) as caught:
        send(asked({}), maker, operator, now)

    assert first.headers["Cache-Control"] == "no-store"
    assert (caught.value.code, maker.made) == (Code.SECRET_NOT_REPLAYED, 1)
    assert str(first.data["id"]) in caught.value.detail
    kept = IdempotentAnswer.objects.get()
    assert (kept.answer, kept.created) == (None, str(first.data["id"]))


def test_a_refusal_is_not_remembered(maker: Maker, operator: Caller, now: datetime) -> None:
    def refuse() -> Made:
        maker()
        raise Refused(Code.STATE_CONFLICT, "not now")

    with pytest.raises(Refused):
        send(asked({}), refuse, operator, now)
    assert maker.made == 0
    assert send(asked({}), maker, operator, now).status_code == 201


@pytest.mark.parametrize("key", ["", " ", "with space", "x" * 129, "umlaut-ü"])
def test_a_key_out_of_shape_is_refused_by_name(maker: Maker, operator: Caller, now: datetime, key: str) -> None:
    with pytest.raises(Refused) as caught:
        send(asked({}, key=key), maker, operator, now)
    assert (caught.value.code, caught.value.errors[0].field) == (Code.INVALID, "Idempotency-Key")


def test_a_key_of_128_characters_is_taken(maker: Maker, operator: Caller, now: datetime) -> None:
    assert send(asked({}, key="x" * 128), maker, operator, now).status_code == 201


def test_what_is_older_than_a_day_is_forgotten_in_batches(maker: Maker, operator: Caller, now: datetime) -> None:
    for number in range(5):
        send(asked({}, key=f"key-{number}"), maker, operator, now + number * timedelta(hours=1))
    later = now + timedelta(hours=27)
    assert prune(now=later, batch=1, batches=3) == 3
    assert prune(now=later) == 1
    assert IdempotentAnswer.objects.get().key == "key-4"


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_exactly_one_makes_something(maker: Maker, operator: Caller, now: datetime) -> None:
    """The second meets the first in the middle of its transaction and waits for its answer."""
    making = threading.Event()
    waited: list[bool] = []

    def slow() -> Made:
        making.set()
        made = maker()
        second.start()
        second.join(timeout=0.3)  # it cannot end: it waits for this transaction
        waited.append(second.is_alive())
        return made

    answers: list[Response] = []

    def rival() -> None:
        try:
            making.wait(10)
            answers.append(send(asked({}), maker, operator, now))
        finally:
            connection.close()

    second = threading.Thread(target=rival)
    answers.append(send(asked({}), slow, operator, now))
    second.join(timeout=30)

    assert waited == [True]
    assert maker.made == 1
    assert len({str(as_sent(answer)["id"]) for answer in answers}) == 1


@pytest.mark.django_db(transaction=True)
def test_a_key_and_what_it_made_stand_or_fall_together(maker: Maker, operator: Caller, now: datetime) -> None:
    with transaction.atomic():
        send(asked({}), maker, operator, now)
        transaction.set_rollback(True)
    assert (maker.made, IdempotentAnswer.objects.count()) == (0, 0)
