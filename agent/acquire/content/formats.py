"""Looks at a fetched file's bytes for what would run when it is loaded; nothing is ever loaded to find out."""

import io
import os
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from agent.acquire import kinds
from agent.acquire.content import arrays, safetensors, zips
from agent.acquire.content.pickles import is_pickle
from agent.acquire.disk.paths import Tree
from agent.acquire.plan import shown
from agent.acquire.terms import Failed
from agent.wire import Format

_HEAD_BYTES = 4096  # the first 512 of them decide most

_CODE = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",  # Mach-O
    b"\xca\xfe\xba\xbe",  # a Java class, or Mach-O of several processors
    b"\0asm", b"dex\n", b"BC\xc0\xde", b"MZqFpD",
)  # fmt: skip
_ARCHIVES = (
    b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07", b"!<arch>\n", b"LZIP\x01", b"MSCF\0\0\0\0",
)  # fmt: skip
_BZIP2 = b"1AY&SY"
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_HDF5 = b"\x89HDF\r\n\x1a\n"

# config.json may name code by "auto_map". That alone runs nothing: the files it names are refused by their own names,
# and a runtime follows it only when it is told to trust remote code.


def inspect(path: Path, name: str, allowed: Collection[Format] = ()) -> None:
    """Look at the file on disk that is ``name`` in its repository.

    Raises:
        Failed: manifest_refused; its bytes need a format that is not ``allowed``, or are no safetensors at all though
            named so. Nothing in it was executed.
    """
    with Tree(path.parent) as tree:
        fd = tree.open(path.name)
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        head = file.read(_HEAD_BYTES)
        refused = sorted(needed(file, size, head, name) - set(allowed))
        if refused:
            wanted = " and ".join(f"{kind!r}" for kind in refused)
            remedy = f"Leave it out with an ignore pattern, or allow the format {wanted} by name."
            raise Failed("manifest_refused", f"{shown(name)} is one of the {kinds.WHY[refused[0]]}. {remedy}")
        _as_named(file, size, head, name)


def needed(file: BinaryIO, size: int, head: bytes, name: str) -> frozenset[Format]:
    """Which formats must be allowed for these bytes under that name; none for what only holds data."""
    by_name = kinds.by_name(name, large=False)
    by_bytes = _by_bytes(file, size, head)
    if by_name is not None:
        return by_bytes | {by_name}
    if by_bytes or b"\0" not in head or (kinds.is_data(name) and not kinds.is_text(name)):
        return by_bytes
    return frozenset({"other"})  # neither text nor what its name promises: it may be anything


def _by_bytes(file: BinaryIO, size: int, head: bytes) -> frozenset[Format]:
    file.seek(0)
    if is_pickle(file, size):
        return frozenset({"pickle"})
    if zips.is_zip(file, size, head):
        return zips.holds(file, size)
    if arrays.is_array(head):
        return frozenset({"pickle"} if arrays.holds_objects(head) else ())
    if _is_hdf5(file, size):
        return frozenset({"pickle"})  # Keras keeps marshalled functions in it
    if _is_code(head):
        return frozenset({"code"})
    if head.startswith(_ARCHIVES) or head[4:10] == _BZIP2 or _is_lzma(head) or _is_tar(head):
        return frozenset({"archive"})
    return _by_unpacked(head)


def _by_unpacked(head: bytes) -> frozenset[Format]:
    """Bare zlib, as joblib packs its pickles: two bytes at its start that a text may have as well."""
    if not head.startswith(_ZLIB):
        return frozenset()
    try:
        inner = zlib.decompressobj().decompress(head, _HEAD_BYTES)
    except zlib.error:
        return frozenset()
    return frozenset({"pickle"} if is_pickle(io.BytesIO(inner), len(inner), whole=False) else {"archive"})


def _is_code(head: bytes) -> bool:
    if head.startswith(_CODE):
        return True
    if head.startswith(b"#!"):
        return head[2:64].lstrip(b" \t").startswith(b"/")
    if head.startswith(b"MZ"):
        at = int.from_bytes(head[60:64], "little")
        return head[at : at + 2] in (b"PE", b"NE", b"LE", b"LX") or b"\0" in head[:64]
    return head[2:4] == b"\r\n" and head[4:8] in (b"\0\0\0\0", b"\1\0\0\0", b"\3\0\0\0")  # compiled Python


def _is_hdf5(file: BinaryIO, size: int) -> bool:
    """Its readers look at the start, and behind a user's own block: at each doubling of 512."""
    at = 0
    while at < size:
        file.seek(at)
        if file.read(8) == _HDF5:
            return True
        at = at * 2 or 512
    return False


def _is_lzma(head: bytes) -> bool:
    """The old format, without a mark of its own: properties, a size of the dictionary, and of what was packed."""
    length = int.from_bytes(head[5:13], "little")
    return head[:3] == b"\x5d\0\0" and len(head) > 13 and (length == 2**64 - 1 or length < 2**40)


def _is_tar(head: bytes) -> bool:
    """By its mark, or, as of old, by the sum that its first header carries."""
    block = head[:512]
    if len(block) < 512:
        return False
    if block[257:262] == b"ustar":
        return True
    said = block[148:156].strip(b" \0")
    if not said or said.strip(b"01234567"):
        return False
    return sum(block) - sum(block[148:156]) + 8 * 32 == int(said, 8)


def _as_named(file: BinaryIO, size: int, head: bytes, name: str) -> None:
    ending = kinds.suffix(name)
    if ending == "safetensors":
        try:
            safetensors.check(file, size)
        except safetensors.Damaged as error:
            raise Failed("manifest_refused", f"{shown(name)} is no safetensors file: {error}.") from None
    if ending == "gguf" and not head.startswith(b"GGUF"):
        raise Failed("manifest_refused", f"{shown(name)} is no GGUF file: it does not begin as one.")
