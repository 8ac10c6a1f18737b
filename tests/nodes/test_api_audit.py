"""The history by REST: pages by position, filters, and the whole of it as NDJSON and CSV."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from nodes import export
from nodes.audit import Subject, record, verify
from nodes.callers import SYSTEM, Caller
from nodes.event_types import EventType
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit-events"
NODE = uuid.UUID(int=5)
ABOUT = Subject("node", str(NODE), "server01", NODE)
OTHER = Subject("node", "x", "server02", uuid.UUID(int=6))


def tell(count: int, **details: Any) -> None:
    """So many events, a second apart."""
    for number in range(count):
        at = START + timedelta(seconds=number)
        record(EventType.NODE_STALE, by=SYSTEM, about=ABOUT, at=at, **details | {"number": number})


def positions(client: Client, **query: Any) -> list[int]:
    """The positions on a page."""
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [event["position"] for event in response.json()["results"]]


def streamed(client: Client, **query: Any) -> Any:
    """A streamed response and its text."""
    response = client.get(URL, query)
    assert response.status_code == 200, getattr(response, "content", b"")
    return response, b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]


def test_events_come_newest_first_with_their_place_in_the_chain(api: Client) -> None:
    tell(2)
    newest, oldest = api.get(URL).json()["results"]
    assert (newest["position"], oldest["position"]) == (2, 1)
    assert newest["previous_hash"] == oldest["hash"]
    assert (newest["type"], newest["about_label"], newest["details"]) == ("node.stale", "server01", {"number": 1})


def test_pages_lead_from_the_newest_to_the_oldest(api: Client) -> None:
    tell(7)
    seen, url = [], f"{URL}?page_size=3"
    while url:
        page = api.get(url).json()
        seen.append([event["position"] for event in page["results"]])
        url = page["next"]
    assert seen == [[7, 6, 5], [4, 3, 2], [1]]


def test_what_is_recorded_meanwhile_moves_no_page(api: Client) -> None:
    tell(4)
    following = api.get(URL, {"page_size": 2}).json()["next"]
    tell(3)
    assert [event["position"] for event in api.get(following).json()["results"]] == [2, 1]


@pytest.fixture
def told() -> None:
    """Four events that differ in everything."""
    ada = Caller(kind="person", role=SYSTEM.role, id="7", label="Ada", address="192.0.2.9", request_id="req-1")
    record(EventType.NODE_STALE, by=SYSTEM, about=ABOUT, at=START)
    record(EventType.NODE_OFFLINE, by=SYSTEM, about=ABOUT, at=START + timedelta(minutes=1))
    record(EventType.NODE_DISABLED, by=ada, about=ABOUT, at=START + timedelta(minutes=2), reason="fan replaced")
    record(EventType.NODE_STALE, by=SYSTEM, about=OTHER, at=START + timedelta(minutes=3))


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"type": "node.stale"}, [4, 1]),
        ({"type": ["node.offline", "node.disabled"]}, [3, 2]),
        ({"node": str(NODE)}, [3, 2, 1]),
        ({"actor": "ada"}, [3]),
        ({"actor": "7"}, [3]),
        ({"actor": "system"}, [4, 2, 1]),
        ({"since": "2026-03-01T12:01:00Z"}, [4, 3, 2]),
        ({"until": "2026-03-01T12:01:00Z"}, [1]),
        ({"q": "FAN"}, [3]),
        ({"q": "server02"}, [4]),
        ({"q": "192.0.2.9"}, [3]),
        ({"q": "req-1"}, [3]),
        ({"type": "node.stale", "node": str(NODE)}, [1]),
        ({"cursor": "3"}, [2, 1]),
    ],
    ids=str,
)
def test_a_filter_narrows(api: Client, query: dict[str, Any], found: list[int]) -> None:
    assert positions(api, **query) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"type": "node.exploded"}, "type"),
        ({"node": "server01"}, "node"),
        ({"since": "monday"}, "since"),
        ({"until": "x"}, "until"),
        ({"cursor": "0"}, "cursor"),
        ({"cursor": "abc"}, "cursor"),
        ({"cursor": str(2**63)}, "cursor"),
        ({"page_size": "501"}, "page_size"),
        ({"page_size": "-1"}, "page_size"),
        ({"format": "xml"}, "format"),
        ({"page": "2"}, "page"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_name(api: Client, query: dict[str, str], field: str) -> None:
    response = api.get(URL, query)
    body = response.json()
    assert (response.status_code, body["code"]) == (400, "invalid")
    assert [error["field"].partition(".")[0].partition("[")[0] for error in body["errors"]] == [field]


def test_ndjson_streams_the_whole_oldest_first(api: Client) -> None:
    tell(5)
    response, text = streamed(api, format="ndjson", page_size=2)
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["position"] for event in events] == [1, 2, 3, 4, 5]
    assert response["Content-Type"] == "application/x-ndjson"
    assert response["Content-Disposition"].startswith('attachment; filename="modelforge-audit-')
    assert events[-1] == api.get(URL).json()["results"][0]


def test_csv_is_a_table_with_a_heading(api: Client) -> None:
    tell(3)
    response, text = streamed(api, format="csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert [row["position"] for row in rows] == ["1", "2", "3"]
    assert json.loads(rows[2]["details"]) == {"number": 2}
    assert datetime.fromisoformat(rows[0]["at"]) == START.astimezone(UTC)


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_cell_is_a_formula(api: Client, label: str) -> None:
    by = Caller(kind="person", role=SYSTEM.role, id="7", label=label)
    record(EventType.NODE_STALE, by=by, about=ABOUT, at=START)
    _, text = streamed(api, format="csv")
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row["actor_label"] == f"'{label}"


@pytest.mark.parametrize("label", ["server=1", "ada", "a,b", 'say "x"', "a\nb", "ü"])
def test_harmless_cells_stay_as_they_are(api: Client, label: str) -> None:
    by = Caller(kind="person", role=SYSTEM.role, id="7", label=label)
    record(EventType.NODE_STALE, by=by, about=ABOUT, at=START)
    _, text = streamed(api, format="csv")
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row["actor_label"] == label


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_stream_takes_the_filters(api: Client, form: str) -> None:
    tell(3)
    record(EventType.NODE_OFFLINE, by=SYSTEM, about=OTHER, at=START)
    _, text = streamed(api, format=form, type="node.offline")
    assert text.count("node.offline") == 1
    assert "node.stale" not in text


def test_a_stream_is_read_in_pieces_and_misses_nothing(monkeypatch: pytest.MonkeyPatch, api: Client) -> None:
    monkeypatch.setattr(export, "CHUNK", 2)
    monkeypatch.setattr(export.in_chunks, "__defaults__", (2,))
    tell(5)
    with CaptureQueriesContext(connection) as queries:
        _, text = streamed(api, format="ndjson")
    assert len(text.splitlines()) == 5
    assert sum("LIMIT 2" in query["sql"] for query in queries) == 4


def test_a_stream_ends_where_the_history_ended_when_it_was_asked_for() -> None:
    from nodes.audit import events

    tell(3)
    rows = export.in_chunks(events(), 1)
    first = next(rows)
    tell(3)
    assert [first.position, *(event.position for event in rows)] == [1, 2, 3]


def test_an_empty_history_streams_only_a_heading(api: Client) -> None:
    _, text = streamed(api, format="csv")
    assert text.splitlines()[0].startswith("position,type,at,")
    assert len(text.splitlines()) == 1


def test_accept_headers_do_not_matter(api: Client) -> None:
    tell(1)
    response = api.get(URL, {"format": "csv"}, headers={"Accept": "text/csv"})
    assert response.status_code == 200
    assert api.get(URL, headers={"Accept": "text/csv"})["Content-Type"] == "application/json"


def test_reading_changes_nothing(api: Client) -> None:
    tell(3)
    streamed(api, format="ndjson")
    api.get(URL)
    assert list(verify()) == [1, 2, 3]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_the_history_is_only_read(api: Client, method: str) -> None:
    assert getattr(api, method)(URL).status_code == 405


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_stranger_reads_nothing(stranger: Client, form: str) -> None:
    assert stranger.get(URL, {"format": form}).status_code == 401


def test_a_page_costs_one_query(api: Client) -> None:
    tell(30)
    with CaptureQueriesContext(connection) as queries:
        positions(api)
    assert len(queries) == 1
