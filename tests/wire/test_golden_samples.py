"""The wire stays as it was: golden samples of every message, decoded and encoded by today's code.

A failure here means that agents and control planes in the field would no longer understand each other: an optional
field may be added (and its sample extended), everything else is a new protocol version.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from agent import wire
from agent.protocol import VERSION
from tests.wire.said import SAID

FOLDER = Path(__file__).with_name(f"v{VERSION}")
ALL = sorted(SAID)
NEEDED = {("result", "failure"): "a failed result says why"}
"""Optional fields that the rest of a sample makes necessary, and what is said where they are missing."""


def sample(name: str) -> bytes:
    """The golden bytes."""
    return (FOLDER / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", ALL)
def test_a_sample_still_means_what_it_meant(name: str) -> None:
    assert msgspec.json.decode(sample(name), type=type(SAID[name])) == SAID[name]


@pytest.mark.parametrize("name", ALL)
def test_a_message_is_still_written_as_it_was(name: str) -> None:
    assert json.loads(wire.encode(SAID[name])) == json.loads(sample(name))


def test_every_message_has_a_sample() -> None:
    inner = {kind for kind in structs() if kind in used_inside_others()}
    assert {type(said) for said in SAID.values()} == structs() - inner
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted([*ALL, "schema"])


def test_the_samples_say_every_field_of_every_message() -> None:
    said: dict[type[Struct], set[str]] = {kind: set() for kind in structs()}
    for name, message in SAID.items():
        for kind, fields in spoken(message, json.loads(sample(name))):
            said[kind] |= fields
    silent = {kind.__name__: set(kind.__struct_fields__) - fields for kind, fields in said.items()}
    assert {name: fields for name, fields in silent.items() if fields} == {}


def test_the_shape_of_every_message_is_as_it_was() -> None:
    """Names, types, bounds, and which fields may be left out."""
    assert schema() == json.loads(sample("schema"))


@pytest.mark.parametrize("name", ALL)
def test_a_field_that_only_a_newer_agent_knows_is_ignored(name: str) -> None:
    newer = json.loads(sample(name)) | {"said_by_a_newer_release": [1, {"a": None}]}
    assert msgspec.convert(newer, type(SAID[name]), strict=False) == SAID[name]


@pytest.mark.parametrize("name", ALL)
def test_a_required_field_that_is_missing_is_named(name: str) -> None:
    kind, said = type(SAID[name]), json.loads(sample(name))
    for field in msgspec.structs.fields(kind):
        without = msgspec.json.encode({key: value for key, value in said.items() if key != field.encode_name})
        if field.required or (name, field.name) in NEEDED:
            with pytest.raises(msgspec.ValidationError, match=NEEDED.get((name, field.name), f"`{field.encode_name}`")):
                msgspec.json.decode(without, type=kind)
        else:
            msgspec.json.decode(without, type=kind)


def structs() -> set[type[Struct]]:
    """Every message and every part of one."""
    kinds = {kind for kind in vars(wire).values() if isinstance(kind, type) and issubclass(kind, Struct)} - {Struct}
    return {kind for kind in kinds if not kind.__subclasses__()}  # what two messages have in common is none itself


def used_inside_others() -> set[type[Struct]]:
    """The parts."""
    found = set()
    for message in SAID.values():
        found |= {type(part) for part in parts(message) if part is not message}
    return found


def parts(value: Any) -> Iterator[Struct]:
    """A message and all that is inside it."""
    if isinstance(value, list):
        for item in value:
            yield from parts(item)
    elif isinstance(value, Struct):
        yield value
        for name in value.__struct_fields__:
            yield from parts(getattr(value, name))


def spoken(value: Any, written: Any) -> Iterator[tuple[type[Struct], set[str]]]:
    """For a message and each part: which fields the sample writes down."""
    if isinstance(value, list):
        for item, text in zip(value, written, strict=True):
            yield from spoken(item, text)
    elif isinstance(value, Struct):
        yield type(value), set(written) & set(value.__struct_fields__)
        for name in set(written) & set(value.__struct_fields__):
            yield from spoken(getattr(value, name), written[name])


def schema() -> Any:
    """The shape of all messages, without the texts that explain it."""
    messages = [type(SAID[name]) for name in ALL]
    _, components = msgspec.json.schema_components(messages, ref_template="{name}")
    return json.loads(json.dumps(_bare(components), sort_keys=True))


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        texts = {key for key in ("description", "title") if isinstance(value.get(key), str)}
        return {key: _bare(item) for key, item in value.items() if key not in texts}
    return [_bare(item) for item in value] if isinstance(value, list) else value
