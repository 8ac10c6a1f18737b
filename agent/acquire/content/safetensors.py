"""Whether a file is what the safetensors format promises: a JSON header, then tensors end to end, and nothing else."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_HEADER_BYTES = 100_000_000  # as the format's own readers have it
_BLANKS = re.compile(r"[ \t\r\n]*")

_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C128": 128,
}  # fmt: skip


class Damaged(ValueError):
    """The file is no such file; the text says what is wrong with it."""


def check(file: BinaryIO, size: int) -> None:
    """Read and check the header, never the tensors; ``Damaged`` says what is wrong."""
    file.seek(0)
    start = file.read(8)
    if len(start) < 8:
        raise Damaged("it is too short to have a header")
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER_BYTES:
        raise Damaged(f"its header claims to have {length} bytes")
    if not 2 <= length <= size - 8:
        raise Damaged(f"its header claims {length} of the {size} bytes")
    ends: list[tuple[int, int]] = []
    for name, tensor in _entries(file.read(length)):
        if name == "__metadata__":
            _metadata(tensor)
        else:
            ends.append(_span(name, tensor))
    at = 0
    for begin, end in sorted(ends):
        if begin != at:
            raise Damaged(f"its tensors leave a gap or overlap at byte {min(begin, at)}")
        at = end
    if at != size - 8 - length:
        raise Damaged(f"its tensors end at byte {at} of {size - 8 - length}")


def _entries(header: bytes) -> Iterator[tuple[str, Any]]:
    """The header's names and what each stands for, one at a time: unpacked whole, it could fill the memory."""
    names: set[str] = set()
    try:
        text = header.decode()
        at = _expect(text, 0, "{")
        while text[at : at + 1] != "}" or names:
            name, at = _JSON.raw_decode(text, at)
            if not isinstance(name, str) or name in names:
                raise Damaged("its header has the same name twice, or none")
            names.add(name)
            value, at = _JSON.raw_decode(text, _expect(text, _blanks(text, at), ":"))
            yield name, value
            at = _blanks(text, at)
            if text[at : at + 1] == "}":
                break
            at = _expect(text, at, ",")
        if text[at + 1 :].strip(" \t\r\n"):
            raise Damaged("something stands behind its header")
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, Damaged) else Damaged("its header is no JSON object") from None


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise Damaged("its header is no JSON object")
    return _blanks(text, at + 1)


def _blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two equal names they take."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Damaged("its header has the same name twice")
    return made


_JSON = json.JSONDecoder(object_pairs_hook=_once)


def _metadata(found: Any) -> None:
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise Damaged("its metadata are not texts by name")


def _span(name: str, tensor: Any) -> tuple[int, int]:
    shown = ascii(name[:80])
    try:
        bits, shape, (begin, end) = _BITS.get(tensor["dtype"]), tensor["shape"], tensor["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise Damaged(f"tensor {shown} lacks a dtype, a shape or its two offsets") from None
    numbers = [*shape, begin, end] if isinstance(shape, list) else [None]
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers) or len(shape) > 64:
        raise Damaged(f"tensor {shown} has a shape or offsets that are no counts")
    count = 1
    for number in shape:
        count *= number
        if count >= 1 << 63:
            raise Damaged(f"tensor {shown} has an impossible shape")
    # A dtype that came after this program is believed for its length alone.
    if end < begin or (bits is not None and count * bits != (end - begin) * 8):
        raise Damaged(f"tensor {shown} has {end - begin} bytes, which its shape and dtype deny")
    return begin, end
