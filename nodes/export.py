"""The history as a file: one JSON object a line, or a table that a spreadsheet may open without running anything."""

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet
from rest_framework.utils.encoders import JSONEncoder

CHUNK = 1000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def in_chunks(newest_first: QuerySet[Any], chunk: int = CHUNK) -> Iterator[Any]:
    """The events in the order of the chain, oldest first, as far as it reaches now; read a piece at a time.

    Each piece is found by its position, so that a slow reader holds no cursor and no transaction open.
    """
    last = newest_first.order_by("-position").values_list("position", flat=True).first() or 0
    rows, done = newest_first.filter(position__lte=last).order_by("position"), 0
    while piece := list(rows.filter(position__gt=done)[:chunk]):
        yield from piece
        done = piece[-1].position


def ndjson(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """One JSON object a line."""
    for row in rows:
        yield json.dumps(row, cls=JSONEncoder, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def table(rows: Iterator[dict[str, Any]], columns: list[str]) -> Iterator[bytes]:
    """CSV (RFC 4180) with a heading line; what is an object within a row is JSON in its cell."""
    write: Callable[[list[Any]], str] = csv.writer(_Echo()).writerow
    yield write(columns).encode()
    for row in rows:
        yield write([cell(row[name]) for name in columns]).encode()


def cell(value: Any) -> Any:
    """A value as a cell; one that a spreadsheet would run as a formula gets an apostrophe before it."""
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, cls=JSONEncoder, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) else text


class _Echo:
    """A file that gives each line back instead of keeping it."""

    def write(self, line: str) -> str:
        """The line."""
        return line
