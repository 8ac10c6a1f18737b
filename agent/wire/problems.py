"""What every error says, in one shape."""

from msgspec import Struct


class FieldError(Struct, frozen=True, kw_only=True):
    """One field at fault, with what to do about it."""

    field: str
    detail: str


class Problem(Struct, frozen=True, kw_only=True):
    """Every error's body: RFC 9457 ``application/problem+json`` with a stable ``code``."""

    status: int
    code: str
    title: str = ""
    detail: str = ""
    type: str = "about:blank"
    request_id: str = ""
    retryable: bool = False
    errors: list[FieldError] = []
    protocols: list[int] = []  # the versions spoken, told with protocol_unsupported
