"""The lean way in for agents: one REST view that reads, checks and answers a wire message without DRF's machinery.

It is an ``APIView``, so the schema knows it, but its ``dispatch`` skips content negotiation, request wrapping and
throttling, which cost more than the whole beat (``make bench`` shows both). What an agent view must do stands here
once: bound the body, authenticate, check the protocol, decode, and answer problems as everybody does.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string
from rest_framework.views import APIView

from agent.protocol import MAX_SMALL_BYTES, SPOKEN, VERSION_HEADER, Code, parse_version
from agent.wire import FieldError, encode
from nodes import refusals
from nodes.callers import NodeCaller, Refused

_ECHO = re.compile(r"(Invalid enum value).*?(?= - at `[^`]*`$|$)", re.DOTALL)
"""Where msgspec repeats what it was sent: of any length, and perhaps a secret in the wrong place."""

_VERSION_META = "HTTP_" + VERSION_HEADER.upper().replace("-", "_")


@cache
def _authenticate() -> Callable[[HttpRequest, datetime], NodeCaller]:
    """The authentication that settings name, so that the registry need not know enrollment."""
    return import_string(settings.NODE_AUTHENTICATION)().identify  # type: ignore[no-any-return]


class AgentView(APIView):
    """One agent endpoint: subclasses name the ``message`` type and answer it in ``receive``."""

    message: ClassVar[type[msgspec.Struct] | None] = None
    method: ClassVar[str] = "POST"
    limit: ClassVar[int] = MAX_SMALL_BYTES  # bytes of body
    needs_enabled: ClassVar[bool] = True
    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None  # modelforge.schema describes it from its wire types

    def receive(self, message: Any, *, by: Any, now: datetime) -> msgspec.Struct | None:
        """Act on the message; the answer's body, or None for 204."""
        raise AssertionError(f"{type(self).__name__} answers nothing")

    def caller(self, request: HttpRequest, now: datetime) -> Any:
        """Who speaks: a node by its credential, in the one protocol that we speak.

        Raises:
            Refused: the credential, the node's retirement, its protocol, or its being disabled forbids it.
        """
        by = _authenticate()(request, now)
        if by.retired:
            raise refusals.note(by, Code.NODE_RETIRED, now=now)
        header = request.META.get(_VERSION_META)
        if parse_version(header) not in SPOKEN:
            raise refusals.note_protocol(by, header, now=now)
        if not by.enabled and self.needs_enabled:
            raise refusals.note(by, Code.NODE_DISABLED, now=now)
        return by

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Read, act, answer."""
        now = datetime.now(UTC)
        try:
            if request.method != self.method:
                return self._method_not_allowed(request)
            by = self.caller(request, now)  # before the body: who proves nothing holds up no worker by sending slowly
            body = read(request, self.limit)
            answer = self.receive(decode(body, self.message), by=by, now=now)
        except Exception as fault:
            refusal: HttpResponse | None = self.get_exception_handler()(fault, {"view": self, "request": request})
            if refusal is None:
                raise
            return refusal
        response = HttpResponse(status=204) if answer is None else HttpResponse(encode(answer), _JSON)
        response["Cache-Control"] = "no-store"
        return response

    @property
    def allowed_methods(self) -> list[str]:
        """The one method of this endpoint."""
        return [self.method]

    def _method_not_allowed(self, request: HttpRequest) -> HttpResponse:
        refused = Refused(Code.METHOD_NOT_ALLOWED, f"This endpoint takes {self.method}.")
        response: HttpResponse = self.get_exception_handler()(refused, {"view": self, "request": request})
        response["Allow"] = self.method
        return response


_JSON = "application/json"


def read(request: HttpRequest, limit: int) -> bytes:
    """The body, refused with 413 before more than ``limit`` bytes of it are read."""
    if "HTTP_TRANSFER_ENCODING" in request.META:
        raise Refused(Code.LENGTH_REQUIRED, "Send the body with its Content-Length, not in chunks.")
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > limit:
        raise Refused(Code.BODY_TOO_LARGE, f"The body may hold {limit} bytes; this one says it has {length[:20]}.")
    body = request.read(limit + 1)
    if len(body) > limit:
        raise Refused(Code.BODY_TOO_LARGE, f"The body may hold {limit} bytes.")
    return body


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # a text that PostgreSQL cannot hold


@cache
def _decoder(message: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(message)


def decode(body: bytes, message: type[msgspec.Struct] | None) -> Any:
    """The typed message; a body out of shape is refused with the field that is.

    Raises:
        Refused: ``malformed`` where the body is no JSON, ``invalid`` where a field is wrong.
    """
    if message is None:
        return None
    if _NUL.search(body):
        raise Refused(Code.INVALID, "A text holds the character NUL (\\u0000); leave it out.")
    try:
        return _decoder(message).decode(body)
    except msgspec.ValidationError as fault:
        told = _ECHO.sub(r"\1", str(fault))
        said, _, where = told.partition(" - at `")
        path = where.rstrip("`").removeprefix("$").lstrip(".")
        raise Refused(Code.INVALID, told, errors=[FieldError(field=path, detail=said)]) from fault
    except RecursionError as fault:
        raise Refused(Code.MALFORMED, "The body is nested too deep.") from fault
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise Refused(Code.MALFORMED, f"The body is no JSON: {fault}") from fault
