"""The bounds of every text that crosses the wire or is read from a manifest hold to the last character."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Struct, inspect

from agent import wire
from agent.acquire.disk.manifest import Manifest

Bounds = tuple[int | None, int | None, str | None]
"""The shortest, the longest, the pattern."""

SAMPLES = ["", "0" * 40, "0" * 64]
"""Each pattern takes at least one of them; a new pattern adds its own."""


def texts(type: inspect.Type, seen: set[object]) -> Iterator[Bounds]:
    """The bounds of all texts within a type."""
    match type:
        case inspect.StrType():
            yield type.min_length, type.max_length, type.pattern
        case inspect.StructType() if type.cls not in seen:
            seen.add(type.cls)
            for field in type.fields:
                yield from texts(field.type, seen)
        case inspect.UnionType():
            for one in type.types:
                yield from texts(one, seen)
        case inspect.ListType():
            yield from texts(type.item_type, seen)
        case inspect.DictType():
            yield from texts(type.key_type, seen)
            yield from texts(type.value_type, seen)


def bounded() -> list[Bounds]:
    """Every kind of constrained text, once."""
    named = [getattr(wire, name) for name in wire.__all__]
    kinds = [kind for kind in named if isinstance(kind, type) and issubclass(kind, Struct)]
    seen: set[object] = set()
    found = {each for kind in [*kinds, Manifest] for each in texts(inspect.type_info(kind), seen)}
    return sorted(found - {(None, None, None)}, key=str)


BOUNDED = bounded()
PATTERNS = sorted({pattern for _, _, pattern in BOUNDED if pattern is not None})


def takes(text: str, bounds: Bounds) -> bool:
    """Whether a text of these bounds may be this one."""
    least, most, pattern = bounds
    kind = Annotated[str, Meta(min_length=least, max_length=most, pattern=pattern)]
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(text), type=kind) == text)
    except msgspec.ValidationError:
        return False


def test_there_are_such_texts() -> None:
    assert len(PATTERNS) == 3
    assert (1, 200, None) in BOUNDED


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_takes_no_newline_after_or_before_what_fits(pattern: str) -> None:
    fitting = [text for text in SAMPLES if takes(text, (None, None, pattern))]
    assert fitting, "give a sample that fits"
    for text in fitting:
        for odd in (f"{text}\n", f"{text}\r\n", f"\n{text}", f"{text} ", f"{text}\n\n", f"{text}\x00"):
            assert not takes(odd, (None, None, pattern)), repr(odd)


@pytest.mark.parametrize("bounds", [one for one in BOUNDED if one[1] is not None], ids=str)
def test_a_text_of_full_length_takes_no_character_more(bounds: Bounds) -> None:
    least, most, _ = bounds
    assert most is not None
    assert takes("x" * most, bounds)
    assert not takes("x" * most + "\n", bounds)
    assert takes("x" * (least or 0), bounds)
    assert not least or not takes("x" * (least - 1), bounds)
