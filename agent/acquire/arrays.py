"""Whether a NumPy array file holds plain numbers, or objects that NumPy would unpickle."""

import re

_MAGIC = b"\x93NUMPY"
# The header is a Python literal; a type description of plain numbers has only such letters in its quotes.
_DESCRIPTION = re.compile(rb"'descr'\s*:\s*('[<>|=]?[biufcmMSUVV?][0-9]*(\[[a-zA-Z0-9]+\])?'|\[)")


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
    found = _DESCRIPTION.search(header)
    return found is None or found[1] == b"["
