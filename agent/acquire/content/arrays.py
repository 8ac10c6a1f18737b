"""Whether a NumPy array file holds plain numbers, or objects that NumPy would unpickle."""

import ast
import re

_MAGIC = b"\x93NUMPY"
_PLAIN = re.compile(r"[<>|=]?[biufcmMSUVV?][0-9]*(\[[a-zA-Z0-9]+\])?")


def is_array(head: bytes) -> bool:
    """Whether NumPy would take it for an array."""
    return head.startswith(_MAGIC)


def holds_objects(head: bytes) -> bool:
    """Whether loading the array needs a pickle; yes for what we cannot read, structured types among them."""
    version = head[6:7]
    length_bytes = 2 if version == b"\x01" else 4
    start = 8 + length_bytes
    length = int.from_bytes(head[8:start], "little")
    header = head[start : start + length]
    if len(header) < length or not length:
        return True
    return not _is_plain(header)


def _is_plain(header: bytes) -> bool:
    """Read as NumPy reads it, a literal and no expression: of a name told twice the last one counts."""
    try:
        told = ast.literal_eval(header.decode("latin-1"))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    description = told.get("descr") if isinstance(told, dict) else None
    return isinstance(description, str) and _PLAIN.fullmatch(description) is not None
