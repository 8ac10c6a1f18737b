"""A pickle is known by its instructions, whatever it is called; texts and other formats are not taken for one."""

import io
import os
import pickle
import pickletools
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from agent.acquire.content.pickles import is_pickle
from tests.agent.acquire.samples import safetensors


class Command:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


def taken(content: bytes) -> bool:
    """Whether it is taken for a pickle."""
    return is_pickle(io.BytesIO(content), len(content))


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "held",
    [Command(), [Command()] * 3, {"a": [1, 2.5, "x" * 300, None, b"q", 1 << 80], "b": Command()}],
    ids=["bare", "list", "within-data"],
)
def test_what_runs_a_command_is_found_in_every_protocol(protocol: int, held: object) -> None:
    assert taken(pickle.dumps(held, protocol=protocol))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("held", [1, "a", [], {"a": [1.5] * 100}], ids=["number", "text", "nothing", "data"])
def test_a_pickle_of_data_is_a_pickle_too(protocol: int, held: object) -> None:
    assert taken(pickle.dumps(held, protocol=protocol))


def test_a_payload_behind_gigabytes_of_data_is_found_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    size = 3 * 1024**3
    with path.open("wb") as file:
        file.write(b"B" + struct.pack("<I", size))
        file.seek(5 + size)
        file.write(b"0cos\nsystem\n(S'true'\ntR.")
    with path.open("rb") as file:
        assert is_pickle(file, path.stat().st_size)


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'true'\ntRand then garbage",
        b"(S'true'\nios\nsystem\n.",
        b"(cos\nsystem\nS'true'\no.",
        b"\x80\x02cos\nsystem\n(S'true'\ntR\xff\xff",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93(\x8c\x04truetR.",
        b"(lp0\n" + b"I0\na" * 20_000,
        b"(S'" + b"x" * 10_000 + b"'\nios\nsystem\n.",
        bytes.fromhex("80028a0a6cfc9c46f9206aa850192e"),
        pickle.dumps(Command(), protocol=2)[:40],
    ],
    ids=["broken-later", "inst", "obj", "bad-end", "stack-global", "endless", "long-line", "torch-magic", "cut"],
)
def test_hand_made_and_broken_pickles_are_found(content: bytes) -> None:
    assert taken(content)


RUN = b"cos\nsystem\n(S'true'\ntR."
SMUGGLED = {
    "behind a mark that is popped": b"(0" + RUN,
    "behind a mark that is popped, with its protocol": b"\x80\x02(0" + RUN,
    "behind a number in hexadecimal": b"I0x10\n0" + RUN,
    "behind a long number in octal": b"L0o7L\n0" + RUN,
    "behind a number with a zero in front": b"I010\n0" + RUN,
    "in a frame beyond the end": b"\x95" + (1000).to_bytes(8, "little") + RUN,
    "in a frame without end": b"\x95" + b"\xff" * 7 + b"\0" + RUN,
}


@pytest.mark.parametrize("how", SMUGGLED)
def test_what_an_unpickler_would_run_is_found_however_it_is_smuggled(how: str) -> None:
    assert taken(SMUGGLED[how])
    assert any(_runs(unpickler, SMUGGLED[how]) for unpickler in (pickle.Unpickler, pickle._Unpickler))


class _Ran(Exception):
    """It would have run."""


def _runs(unpickler: Any, content: bytes) -> bool:
    """Whether this unpickler calls what it is told to."""

    def ran(*_: object) -> None:
        raise _Ran

    class Caught(unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> object:
            return ran

    try:
        Caught(io.BytesIO(content)).load()
    except _Ran:
        return True
    except Exception:  # noqa: BLE001  whatever it trips over
        return False
    return False


def test_what_either_unpickler_would_run_is_found_in_whatever_is_put_before_it() -> None:
    luck = random.Random(1)
    opcodes = [opcode for opcode in pickletools.opcodes if opcode.name not in ("STOP", "BYTEARRAY8", "LONG_BINPUT")]
    for _ in range(1000):
        before = b"".join(_instruction(luck.choice(opcodes), luck) for _ in range(luck.randrange(1, 4)))
        content = before + RUN
        if any(_runs(unpickler, content) for unpickler in (pickle.Unpickler, pickle._Unpickler)):
            assert taken(content), content


def _instruction(opcode: pickletools.OpcodeInfo, luck: random.Random) -> bytes:
    """With some argument."""
    code = opcode.code.encode("latin-1")
    if opcode.arg is None:
        return code
    n = opcode.arg.n
    if n == pickletools.UP_TO_NEWLINE:
        if opcode.name in ("GLOBAL", "INST"):
            return code + b"os\nsystem\n"
        return code + luck.choice([b"1", b"01", b"0x1f", b"-3", b" 4", b"5L", b"1e3", b"nan", b"'x'", b"0o7"]) + b"\n"
    counts = {
        pickletools.TAKEN_FROM_ARGUMENT1: 1,
        pickletools.TAKEN_FROM_ARGUMENT4: 4,
        pickletools.TAKEN_FROM_ARGUMENT4U: 4,
        pickletools.TAKEN_FROM_ARGUMENT8U: 8,
    }
    if n in counts:
        length = luck.randrange(4)
        return code + length.to_bytes(counts[n], "little") + b"abcd"[:length]
    if opcode.name == "FRAME":
        return code + luck.choice([0, 5, 1000]).to_bytes(8, "little")
    return code + bytes(luck.choice([0, 1, 4, 255]) for _ in range(n))


TEXTS = {
    "empty": b"",
    "json": b'{"model_type": "llama"}',
    "list": b"[1, 2]",
    "markdown": b"# A model\n\nIt is small.\n",
    "vocabulary": b"cat\ndog\nRat\nson\ntiger\n",
    "c-words": b"ca\ncb\ncc\ncd\nce\ncf\n" * 2000,
    "copyright": b"copyright notice\nand so on\nRest reserved.\n",
    "sentence": b"I am a text.\n",
    "permission": b"Permission is hereby granted\n.\n",
    "numbers": b"1 2 3\n4 5 6\n",
    "one-letter": b"N.",
    "dots": b"....",
    "parentheses": b"((((((((((((((((",
    "brackets": b"]]]]]]]]]]]]]]]]",
    "protocol-mark-and-zeros": b"\x80\x02" + b"\0" * 30,
    "protocol-9": b"\x80\x09K\x01.",
    "string-longer-than-the-file": b"\x80\x04B" + struct.pack("<I", 100) + b"x",
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "gguf": b"GGUF\3\0\0\0" + struct.pack("<QQ", 291, 20) + b"general.architecture",
    "sentencepiece": b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02",
    "safetensors": safetensors(),
    "safetensors-with-a-header-of-0x4e0480-bytes": struct.pack("<Q", 0x4E0480) + b'{"w":' + b" " * 100,
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_pickle_is_not_taken_for_one(name: str) -> None:
    assert not taken(TEXTS[name])


def test_of_a_head_that_begins_as_a_pickle_the_rest_is_feared() -> None:
    content = pickle.dumps({"a": "x" * 5000}, protocol=4)
    assert is_pickle(io.BytesIO(content[:100]), len(content), whole=False)
    assert not is_pickle(io.BytesIO(b'{"a": 1'), 5000, whole=False)
