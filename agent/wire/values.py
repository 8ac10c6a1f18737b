"""What messages are made of: names, sizes and instants with their bounds, and readings that are a value or a reason."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

T = TypeVar("T")

END = r"$(?!\n)"
"""The end of a pattern: in Python, ``$`` alone lets a newline follow; other languages read this as they read ``$``."""

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=255)]
Said = Annotated[str, Meta(max_length=1000)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
Key = Annotated[str, Meta(min_length=1, max_length=128)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Instant = Annotated[datetime, Meta(tz=True)]
Seconds = Annotated[float, Meta(ge=0, le=10**9)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]

Reason = Literal["unsupported", "denied", "lost", "error"]
"""Why there is no value: the device has none, we may not ask, the device fell off, or the call failed."""

MAX_DEVICES = 256  # GPUs and MIG instances of one node
MAX_VOLUMES = 32


class Reading(Struct, Generic[T], frozen=True, omit_defaults=True):
    """A measured value, or the reason why there is none (``code``: the NVML or errno number behind it)."""

    value: T | None = None
    reason: Reason | None = None
    code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a reading holds a value or a reason, not both and not neither")


encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
