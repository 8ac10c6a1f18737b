"""What a zip holds that would run when a framework loads it, told from its list of members and their first bytes."""

import io
import re
import struct
import zipfile
import zlib
from typing import BinaryIO

from agent.acquire import kinds
from agent.acquire.content import arrays
from agent.acquire.content.pickles import is_pickle
from agent.wire import Format

_START, _END, _FAR_END = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06"
_FAR = 0xFFFFFFFF  # the true number stands in the record of large zips
_END_BYTES = 22
_LONGEST_COMMENT = 0xFFFF
_MOST_LIST_BYTES = 16 * 1024 * 1024
_MOST_MEMBERS = 10_000
_HEAD_BYTES = 16 * 1024

_UNKNOWN: frozenset[Format] = frozenset({"archive", "pickle", "code"})
"""What nobody can look into may hold anything."""


def is_zip(file: BinaryIO, size: int, head: bytes) -> bool:
    """Whether zip readers would open it: by its start, or by its end, where something else stands before it."""
    if head.startswith((_START, _END)):
        return True
    return _ends_as_zip(file, size)


def holds(file: BinaryIO, size: int) -> frozenset[Format]:
    """Which formats must be allowed for it; none for arrays of plain numbers."""
    if _longest_list(file, size) > _MOST_LIST_BYTES:
        return _UNKNOWN
    try:
        with zipfile.ZipFile(file) as archive:
            return _members(archive)
    except (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError, LookupError, EOFError, OSError):
        return _UNKNOWN  # damaged, encrypted or packed as nobody does; other readers may be less strict


def _members(archive: zipfile.ZipFile) -> frozenset[Format]:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) > _MOST_MEMBERS:
        return _UNKNOWN
    found: set[Format] = set()
    plain = bool(members)
    for member in members:
        name = member.filename
        kind = kinds.by_name(name, large=False)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return _UNKNOWN  # the others unpack without a bound
        with archive.open(member) as packed:
            head = packed.read(_HEAD_BYTES)
        if is_pickle(io.BytesIO(head), max(member.file_size, len(head)), whole=len(head) == member.file_size):
            kind = "pickle"
        elif arrays.is_array(head):
            kind = "pickle" if arrays.holds_objects(head) else None
        if kind is not None:
            found.add(kind)
        plain &= name.endswith(".npy") and kind is None
    if plain:
        return frozenset()  # an .npz of numbers
    if "pickle" in found:
        # PyTorch's own container is a zip, and no more to be feared than the pickle in it.
        return frozenset(found - {"archive", "other"})
    return frozenset(found | {"archive"})


def _tail(file: BinaryIO, size: int) -> bytes:
    file.seek(max(0, size - _END_BYTES - _LONGEST_COMMENT))
    tail = file.read(_END_BYTES + _LONGEST_COMMENT)
    file.seek(0)
    return tail


def _ends(tail: bytes) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(_END), tail)]


def _ends_as_zip(file: BinaryIO, size: int) -> bool:
    """Whether a record that fits closes the file: four bytes alone may stand in any file by chance."""
    tail = _tail(file, size)
    for at in _ends(tail):
        record = tail[at : at + _END_BYTES]
        if len(record) < _END_BYTES or at + _END_BYTES + int.from_bytes(record[20:22], "little") > len(tail):
            continue
        listed, begins = int.from_bytes(record[12:16], "little"), int.from_bytes(record[16:20], "little")
        if _FAR in (listed, begins) or listed + begins <= size - len(tail) + at:
            return True
    return False


def _longest_list(file: BinaryIO, size: int) -> int:
    """The most bytes that any closing record makes a reader take into memory."""
    tail = _tail(file, size)
    found = [int.from_bytes(tail[at + 12 : at + 16], "little") for at in _ends(tail)]
    far = (match.start() + 40 for match in re.finditer(re.escape(_FAR_END), tail))
    found += [int.from_bytes(tail[at : at + 8], "little") for at in far]
    return max((length for length in found if length != _FAR), default=0)
