"""Whether bytes are a pickle, told by walking its instructions as an unpickler would, without running any of them."""

import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

_MOST_OPCODES = 20_000  # as many in a row are no accident
_TELLING = 8  # after a protocol mark: as many valid instructions are no accident either
_LONGEST_LINE = 4096

_BY_CODE = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
_IMPORTS = frozenset({"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"})
_CALLS = frozenset({"REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD"})
_COUNTED = {  # how many bytes say how many bytes follow
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_NAME = re.compile(rb"[A-Za-z_][\w.]*")


def _whole(line: bytes) -> int:
    """As unpicklers read it: 0x10 is a number, too, and so is 010."""
    try:
        return int(line, 0)
    except ValueError:
        return int(line)


_LINES: dict[str, Callable[[bytes], object]] = {
    "INT": _whole,
    "LONG": lambda line: _whole(line.removesuffix(b"L")),
    "FLOAT": float,
    "GET": int,
    "PUT": int,
}


class _NoPickle(Exception):
    """An unpickler would stop here."""


@dataclass(slots=True)
class _Walk:
    """How far the walk is: how deep the stack, where its marks are, and what was seen."""

    depth: int = 0
    marks: list[int] = field(default_factory=list)
    opcodes: int = 0
    marked: bool = False  # a protocol mark stands at the start: no text begins like that
    imports: bool = False
    calls: bool = False

    @property
    def runs(self) -> bool:
        """Whether loading it would have called something by now."""
        return self.imports and self.calls

    @property
    def certain(self) -> bool:
        """Whether that much can be no accident."""
        return self.runs or self.opcodes >= _MOST_OPCODES or (self.marked and self.opcodes >= _TELLING)


def is_pickle(file: BinaryIO, size: int, *, whole: bool = True) -> bool:
    """Whether an unpickler that is given the file would take it up, from its present position to ``size``.

    ``whole`` False: only its first bytes are here, and what they begin may be a pickle where they end.

    Data is skipped, not read, so a payload behind gigabytes of it is seen too. What is broken off later counts: an
    unpickler runs each instruction as it comes. A text that happens to look like a few harmless instructions does not.
    """
    walk = _Walk()
    try:
        while not walk.certain:
            if _step(file, size, walk) == "STOP":
                return walk.marked or walk.imports
    except _NoPickle:
        here = file.tell()
        return not whole and here >= file.seek(0, 2) and (walk.marked or walk.imports)
    return True


def _step(file: BinaryIO, size: int, walk: _Walk) -> str:
    code = file.read(1)
    opcode = _BY_CODE.get(code[0]) if code else None
    if opcode is None:
        raise _NoPickle
    walk.marked |= opcode.name == "PROTO" and walk.opcodes == 0
    _argument(file, size, opcode)
    _stack(opcode, walk)
    walk.opcodes += 1
    walk.imports |= opcode.name in _IMPORTS
    walk.calls |= opcode.name in _CALLS
    return opcode.name


def _argument(file: BinaryIO, size: int, opcode: pickletools.OpcodeInfo) -> None:
    if opcode.arg is None:
        return
    n = opcode.arg.n
    if n == pickletools.UP_TO_NEWLINE:
        lines = [_line(file) for _ in range(2 if opcode.name in ("GLOBAL", "INST") else 1)]
        _readable(opcode.name, lines)
        return
    if n in _COUNTED:
        n = int.from_bytes(_exactly(file, _COUNTED[n]), "little")
    elif opcode.name == "FRAME":
        _exactly(file, n)  # not believed: the unpickler that is written in Python takes a frame beyond the file's end
        return
    elif opcode.name == "PROTO":
        if _exactly(file, 1)[0] > 5:
            raise _NoPickle
        return
    if n > size - file.tell():
        raise _NoPickle
    file.seek(n, 1)


def _line(file: BinaryIO) -> bytes:
    """The start of a line; a long string is data like any other, and skipped."""
    line = rest = file.readline(_LONGEST_LINE)
    while not rest.endswith(b"\n"):
        if not rest:
            raise _NoPickle
        rest = file.readline(_LONGEST_LINE)
    return line.removesuffix(b"\n")


def _readable(name: str, lines: list[bytes]) -> None:
    """What an unpickler would fail to read ends the walk: so do the words of a text that begins like an instruction."""
    if name in ("GLOBAL", "INST"):
        if not all(_NAME.fullmatch(line.strip()) for line in lines):
            raise _NoPickle
    elif name in _LINES:
        try:
            _LINES[name](lines[0])
        except ValueError:
            raise _NoPickle from None
    elif name == "STRING" and lines[0].strip()[:1] not in (b"'", b'"'):
        raise _NoPickle


def _stack(opcode: pickletools.OpcodeInfo, walk: _Walk) -> None:
    """Keep the stack's depth; what would take more than lies there ends the walk."""
    before = opcode.stack_before
    if opcode.name == "POP" and walk.marks and walk.depth == walk.marks[-1]:
        walk.marks.pop()  # with nothing above it, the mark itself is taken
        return
    if pickletools.markobject in before:
        if not walk.marks:
            raise _NoPickle
        # Of what lies above the mark any number is taken, and what stands before the mark in the table besides.
        walk.depth = walk.marks.pop() - before.index(pickletools.markobject)
    else:
        walk.depth -= len(before)
    if walk.depth < (walk.marks[-1] if walk.marks else 0):
        raise _NoPickle
    for made in opcode.stack_after:
        if made is pickletools.markobject:
            walk.marks.append(walk.depth)
        else:
            walk.depth += 1


def _exactly(file: BinaryIO, count: int) -> bytes:
    read = file.read(count)
    if len(read) < count:
        raise _NoPickle
    return read
