"""The small parts that pages are made of: a labelled row, a cell that may miss its value, a button, a card."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nodes.wording import DASH, value_of, why_not


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled value; ``title`` is its tooltip, ``at`` an instant to show as an age."""

    label: str
    value: str = ""
    title: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as text, or a dash whose tooltip says why there is none."""

    text: str
    title: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """A verb's way in."""

    label: str
    url: str
    icon: str
    danger: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A card that another app adds to a node's page: rows, a small table, verbs for operators."""

    title: str
    rows: list[Row]
    headers: list[str] = field(default_factory=list)
    table: list[list[Any]] = field(default_factory=list)
    buttons: list[Button] = field(default_factory=list)
    more_url: str = ""  # where all of it is listed


def cell(reading: Any, say: Callable[[Any], str]) -> Cell:
    """A stored reading's value put into words, or a dash with its reason."""
    value = value_of(reading)
    return Cell(DASH, why_not(reading), missing=True) if value is None else Cell(say(value))
