"""A listed root's room is what the acts reckon with; amounts are read and said as people type them."""

from datetime import datetime
from typing import Any

import pytest
from django.forms import ValidationError

from artifacts import capacity, listed, room
from artifacts.admin.amounts import AmountField, ReserveField, parse, say
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, TIB, a_job, a_root, an_artifact, progressed


@pytest.fixture
def node(db: None) -> Node:
    """A server."""
    return a_server()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"reserve_percent": None, "reserve_bytes": 50 * GIB},
        {"ceiling_bytes": 60 * GIB},
        {"ceiling_bytes": GIB},
        {"free_bytes": 5 * GIB},
        {"free_bytes": None, "total_bytes": None, "ceiling_bytes": TIB},
        {"device_id": ""},
        {"device_id": "8:2"},
        {"device_id": "8:2", "fsid": "own"},
        {"fsid": "own"},
        {"fsid": "000"},
        {"fsid": "", "device_id": "8:2"},
        {"fsid": "", "device_id": ""},
    ],
    ids=[
        "percent",
        "bytes",
        "ceiling",
        "over",
        "full",
        "unmeasured",
        "no-device",
        "other-number",
        "own-disk",
        "own-id",
        "zeros",
        "no-id",
        "nothing-known",
    ],
)
def test_the_list_reckons_as_the_acts_do(node: Node, now: datetime, fields: dict[str, Any]) -> None:
    root = a_root(node, now, **fields)
    beside = a_root(node, now, "beside")
    elsewhere = a_root(a_server("tower"), now, "elsewhere")
    gone = a_root(node, now, "gone", state="retired", retired_at=now)
    for place in (root, beside, elsewhere, gone):
        a_job(place, now, **progressed(now, 0.25, 40 * GIB))
        a_job(place, now, repo_id="org/preflight", preflight_only=True, **progressed(now, 0.5))
        a_job(place, now, repo_id="org/done", state="succeeded", **progressed(now, 0.5))
        an_artifact(place, now, bytes=7 * GIB)
        an_artifact(place, now, repo_id="org/gone", state="removed", removed_at=now)
    for place in (root, beside, elsewhere):
        found = listed.roots().get(pk=place.pk)
        assert room.of_listed(found) == capacity.of(place)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("50 GiB", 50 * GIB),
        ("50GiB", 50 * GIB),
        ("50 gib", 50 * GIB),
        ("50 G", 50 * GIB),
        ("2 TB", 2 * 10**12),
        ("1.5 TiB", 3 * TIB // 2),
        ("1048576", 2**20),
        ("7 B", 7),
        ("0", 0),
        ("", None),
        ("GiB", None),
        ("-1 GiB", None),
        ("1e9", None),
        ("50 GiBs", None),
        ("50 GB extra", None),
        ("٥ GiB", None),
        ("9999999999 PiB", None),
    ],
)
def test_an_amount_is_read_as_people_type_it(text: str, amount: int | None) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize("amount", [0, 1, 1023, 1000, 2**20, 50 * GIB, 2 * 10**12, 2**60, 3 * TIB // 2, 123_456_789])
def test_what_is_said_reads_back_as_it_was(amount: int) -> None:
    assert parse(say(amount)) == amount


def test_a_reserve_is_an_amount_or_a_share() -> None:
    field = ReserveField("Reserve")
    assert field.clean("10 %") == {"reserve_bytes": None, "reserve_percent": 10.0}
    assert field.clean("7.5%") == {"reserve_bytes": None, "reserve_percent": 7.5}
    assert field.clean("50 GiB") == {"reserve_bytes": 50 * GIB, "reserve_percent": None}
    assert field.clean("") == {}


@pytest.mark.parametrize("text", ["much", "ten %", "-5 %", "% 5"])
def test_a_reserve_that_is_neither_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValidationError, match="for example 50 GiB"):
        ReserveField("Reserve").clean(text)


def test_an_empty_amount_is_none_and_not_zero() -> None:
    assert AmountField("Ceiling").clean(" ") is None
    assert AmountField("Ceiling").clean("0") == 0
