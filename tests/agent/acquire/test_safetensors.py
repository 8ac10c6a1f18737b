"""The header of a safetensors file must say exactly what the file holds."""

import io
import json
import struct
from typing import Any

import pytest

from agent.acquire.content import safetensors as format_
from agent.acquire.content.safetensors import Damaged
from tests.agent.acquire.samples import safetensors, tensor


def check(content: bytes) -> None:
    """As a file of these bytes."""
    format_.check(io.BytesIO(content), len(content))


TWO = {"b": tensor(offsets=[16, 32]), "a": tensor()}
SOUND = {
    "one": safetensors(),
    "two-in-any-order": safetensors(TWO, b"\0" * 32),
    "metadata": safetensors({"__metadata__": {"format": "pt"}, "w": tensor()}),
    "none": safetensors({}, b""),
    "only-metadata": safetensors({"__metadata__": {}}, b""),
    "padded": safetensors(header=json.dumps({"w": tensor()}).encode() + b"   "),
    "scalar": safetensors({"w": tensor("F64", [], [0, 8])}, b"\0" * 8),
    "empty-tensor": safetensors({"e": tensor("F32", [0, 3], [0, 0]), "w": tensor()}),
    "half-bytes": safetensors({"w": tensor("F4", [32], [0, 16])}),
    "a-dtype-of-the-future": safetensors({"w": tensor("F3_E1M1", [40], [0, 16])}),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_file_is_accepted(name: str) -> None:
    check(SOUND[name])


def _described(**changes: Any) -> bytes:
    return safetensors({"w": tensor() | changes})


DAMAGED = {
    "empty": b"",
    "seven-bytes": b"\0" * 7,
    "no-header": struct.pack("<Q", 0),
    "header-longer-than-the-file": struct.pack("<Q", 100) + b"{}",
    "header-to-the-last-byte-and-one-more": struct.pack("<Q", 3) + b"{}",
    "header-over-the-formats-limit": struct.pack("<Q", format_.MAX_HEADER_BYTES + 1) + b"{}",
    "header-of-a-pickle": b"\x80\x04\x95" + b"\0" * 30,
    "not-json": safetensors(header=b"{nonsense"),
    "not-utf-8": safetensors(header=b'{"\xff":1}'),
    "a-list": safetensors(header=b"[1,2,3]"),
    "blank-before": safetensors(header=b" " + json.dumps({"w": tensor()}).encode()),
    "text-behind": safetensors(header=json.dumps({"w": tensor()}).encode() + b" x"),
    "trailing-comma": safetensors(header=json.dumps({"w": tensor()}).encode()[:-1] + b",}"),
    "cut-short": safetensors(header=json.dumps({"w": tensor()}).encode()[:-1]),
    "deep": safetensors(header=b'{"w":' + b"[" * 200_000),
    "same-name-twice": safetensors(header=b'{"__metadata__":{},"__metadata__":{}}', data=b""),
    "same-key-twice": safetensors(header=b'{"w":{"dtype":"U8","dtype":"I8","shape":[16],"data_offsets":[0,16]}}'),
    "name-that-is-a-number": safetensors(header=b"{1:2}"),
    "metadata-of-numbers": safetensors({"__metadata__": {"a": 1}, "w": tensor()}),
    "metadata-as-a-list": safetensors({"__metadata__": [], "w": tensor()}),
    "tensor-as-a-list": safetensors({"w": [1]}),
    "no-dtype": safetensors({"w": {"shape": [4], "data_offsets": [0, 16]}}),
    "three-offsets": _described(data_offsets=[0, 16, 16]),
    "offsets-as-text": _described(data_offsets=["0", "16"]),
    "shape-of-floats": _described(shape=[4.0]),
    "shape-of-booleans": _described(shape=[True, 4]),
    "shape-below-zero": _described(shape=[-4]),
    "shape-that-overflows": _described(shape=[1 << 32, 1 << 32]),
    "shape-that-is-a-number": _described(shape=4),
    "wrong-bytes-for-its-shape": _described(shape=[5]),
    "backwards": _described(data_offsets=[16, 0]),
    "gap": safetensors({"a": tensor(), "b": tensor(offsets=[17, 33])}, b"\0" * 33),
    "overlap": safetensors({"a": tensor(), "b": tensor(offsets=[8, 24])}, b"\0" * 24),
    "late-start": safetensors({"a": tensor(offsets=[1, 17])}, b"\0" * 17),
    "a-byte-behind": safetensors(data=b"\0" * 17),
    "a-byte-short": safetensors(data=b"\0" * 15),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_not_what_its_header_says_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(Damaged) as caught:
        check(DAMAGED[name])
    assert str(caught.value).startswith(("it", "its", "tensor", "something"))
