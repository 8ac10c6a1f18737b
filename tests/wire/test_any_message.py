"""Whatever the types allow crosses the wire unharmed, and whatever else arrives is refused in one way."""

import functools
from datetime import UTC
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct, inspect

from agent import wire
from agent.protocol import Code
from nodes.agent_view import decode
from nodes.callers import Refused
from tests.wire.said import SAID

MESSAGES = sorted({type(said) for said in SAID.values()}, key=lambda kind: kind.__name__)
TEXT = st.characters(exclude_categories=["Cs"])
quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def values(type: inspect.Type) -> st.SearchStrategy[Any]:
    """All values of a wire type, within its bounds."""
    match type:
        case inspect.StrType() if type.pattern is not None:
            return st.from_regex(type.pattern)
        case inspect.StrType():
            longest = 24 if type.max_length is None else min(type.max_length, 24)
            return st.text(TEXT, min_size=type.min_length or 0, max_size=longest)
        case inspect.IntType():
            return st.integers(type.ge, type.le)
        case inspect.FloatType():
            return st.floats(type.ge, type.le, allow_nan=False, allow_infinity=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.UUIDType():
            return st.uuids()
        case inspect.DateTimeType():
            return st.datetimes(timezones=st.just(UTC))
        case inspect.LiteralType():
            return st.sampled_from(type.values)
        case inspect.ListType():
            return st.lists(values(type.item_type), max_size=3)
        case inspect.DictType():
            return st.dictionaries(values(type.key_type), values(type.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of([values(one) for one in type.types])
        case inspect.StructType():
            return messages(type)
    raise AssertionError(f"the wire has a {type}")


@functools.cache
def any_of(kind: type[Struct]) -> st.SearchStrategy[Struct]:
    """All messages of a kind."""
    return messages(inspect.type_info(kind))  # type: ignore[arg-type]


def messages(type: inspect.StructType) -> st.SearchStrategy[Struct]:
    """All messages of a type; a reading holds a value or a reason."""
    fields = {field.name: field.type for field in type.fields}
    kind: Any = getattr(type.cls, "__origin__", type.cls)
    if kind is wire.Result:
        return st.one_of([_results(fields, failed) for failed in (True, False)])
    if kind is not wire.Reading:
        return st.builds(kind, **{name: values(inner) for name, inner in fields.items()})
    value, reason, code = (_present(fields[name]) for name in ("value", "reason", "code"))
    return st.builds(kind, value=value) | st.builds(kind, reason=reason, code=st.none() | code)


def _results(fields: dict[str, inspect.Type], failed: bool) -> st.SearchStrategy[Struct]:
    """All results; a failed one says why, and no other does."""
    outcome = st.just("failed") if failed else st.sampled_from(["succeeded", "cancelled", "released"])
    odd = {"outcome": outcome, "failure": _present(fields["failure"]) if failed else st.none()}
    return st.builds(wire.Result, **{name: values(inner) for name, inner in fields.items()} | odd)


def _present(type: inspect.Type) -> st.SearchStrategy[Any]:
    """All values of an optional type but None."""
    assert isinstance(type, inspect.UnionType)
    return st.one_of([values(one) for one in type.types if not isinstance(one, inspect.NoneType)])


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_every_message_that_the_types_allow_crosses_the_wire(kind: type[Struct], data: st.DataObject) -> None:
    message = data.draw(any_of(kind))
    assert msgspec.json.decode(wire.encode(message), type=kind) == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(TEXT), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_a_message_with_one_field_replaced_by_anything_is_read_or_refused(
    kind: type[Struct], data: st.DataObject
) -> None:
    said = msgspec.to_builtins(next(message for message in SAID.values() if type(message) is kind))
    said[data.draw(st.sampled_from(sorted(said)))] = data.draw(JSON)
    read_or_refused(msgspec.json.encode(said), kind)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@quick
@given(body=st.binary(max_size=64))
def test_bytes_that_are_no_message_are_refused(kind: type[Struct], body: bytes) -> None:
    read_or_refused(body, kind)


def read_or_refused(body: bytes, kind: type[Struct]) -> None:
    """As an agent's endpoint reads it: the message, or a refusal that says why."""
    try:
        said: object = decode(body, kind)
    except Refused as refused:
        said = refused.code
    assert isinstance(said, kind) or said in {Code.INVALID, Code.MALFORMED}


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    """It may be a secret in the wrong place, and it may be long."""
    said = msgspec.to_builtins(SAID["facts"]) | {"gpu_runtime": {"state": "said by mistake` - at `$.x"}}
    with pytest.raises(Refused) as refused:
        decode(msgspec.json.encode(said), wire.Facts)
    assert refused.value.detail == "Invalid enum value - at `$.gpu_runtime.state`"
    assert [error.field for error in refused.value.errors] == ["gpu_runtime.state"]
