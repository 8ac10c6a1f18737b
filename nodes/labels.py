"""What a node may be called and labelled: the bounds that every way in checks, with the remedy in words."""

import re
from collections.abc import Iterator
from typing import Any

from agent.wire import FieldError

MAX_LABELS = 32
MAX_VALUE = 255
KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that no name needs; a database refuses some of them."""


def faults(labels: Any, field: str = "labels") -> Iterator[FieldError]:
    """What is wrong with the labels, each fault with the field's name; nothing when they may stand."""
    if not isinstance(labels, dict):
        yield FieldError(field=field, detail='Give an object of texts, for example {"site": "office"}.')
        return
    if len(labels) > MAX_LABELS:
        yield FieldError(field=field, detail=f"A node carries at most {MAX_LABELS} labels; these are {len(labels)}.")
    for key, value in labels.items():
        if not isinstance(key, str) or not KEY.fullmatch(key):
            detail = "Name a label with at most 63 letters, digits and ._/- between the first and last."
            yield FieldError(field=f"{field}.{str(key)[:63]}", detail=detail)
        elif not isinstance(value, str) or len(value) > MAX_VALUE or CONTROL.search(value):
            yield FieldError(
                field=f"{field}.{key}", detail=f"A label's value is a text of at most {MAX_VALUE} characters."
            )


def text_fault(value: Any, field: str, *, most: int, least: int = 0) -> FieldError | None:
    """What is wrong with a text of ``least`` to ``most`` characters, or None."""
    if isinstance(value, str) and least <= len(value.strip()) <= most and not CONTROL.search(value):
        return None
    bounds = f"{least} to {most}" if least else f"at most {most}"
    return FieldError(field=field, detail=f"Give a text of {bounds} characters, none a control character.")
