"""Every error as application/problem+json (RFC 9457): a stable code, its HTTP status, and whether to try again."""

import math
from collections.abc import Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from rest_framework import exceptions

from agent.protocol import SPOKEN, Code
from agent.wire import FieldError, Problem, encode
from modelforge.bodies import Busy, fault_of
from nodes.callers import Refused

STATUS: dict[Code, HTTPStatus] = {
    Code.MALFORMED: HTTPStatus.BAD_REQUEST,
    Code.INVALID: HTTPStatus.BAD_REQUEST,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    Code.NOT_ACCEPTABLE: HTTPStatus.NOT_ACCEPTABLE,
    Code.UNSUPPORTED_MEDIA_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Code.LENGTH_REQUIRED: HTTPStatus.LENGTH_REQUIRED,
    Code.BODY_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Code.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Code.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Code.CREDENTIAL_UNKNOWN: HTTPStatus.UNAUTHORIZED,
    Code.CREDENTIAL_REVOKED: HTTPStatus.UNAUTHORIZED,
    Code.CREDENTIAL_SUPERSEDED: HTTPStatus.UNAUTHORIZED,
    Code.API_KEY_EXPIRED: HTTPStatus.UNAUTHORIZED,
    Code.API_KEY_REVOKED: HTTPStatus.UNAUTHORIZED,
    Code.NODE_DISABLED: HTTPStatus.FORBIDDEN,
    Code.NODE_RETIRED: HTTPStatus.GONE,
    Code.IDENTITY_CONFLICT: HTTPStatus.CONFLICT,
    Code.TOKEN_UNKNOWN: HTTPStatus.UNAUTHORIZED,
    Code.TOKEN_USED: HTTPStatus.CONFLICT,
    Code.TOKEN_EXPIRED: HTTPStatus.GONE,
    Code.TOKEN_REVOKED: HTTPStatus.GONE,
    Code.NODE_HAS_CREDENTIAL: HTTPStatus.CONFLICT,
    Code.PROTOCOL_UNSUPPORTED: HTTPStatus.UPGRADE_REQUIRED,
    Code.STATE_CONFLICT: HTTPStatus.CONFLICT,
    Code.LEASE_LOST: HTTPStatus.CONFLICT,
    Code.JOB_TYPE_UNSUPPORTED: HTTPStatus.CONFLICT,
    Code.ROOT_UNVERIFIED: HTTPStatus.CONFLICT,
    Code.IDEMPOTENCY_MISMATCH: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.SECRET_NOT_REPLAYED: HTTPStatus.CONFLICT,
    Code.PRECONDITION_FAILED: HTTPStatus.PRECONDITION_FAILED,
    Code.PRECONDITION_REQUIRED: HTTPStatus.PRECONDITION_REQUIRED,
    Code.THROTTLED: HTTPStatus.TOO_MANY_REQUESTS,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

COME_BACK_AFTER = timedelta(seconds=5)
"""Told to those whom a busy server or a database that is away could not answer."""

RETRYABLE = frozenset({Code.THROTTLED, Code.UNAVAILABLE, Code.INTERNAL})

_OF_DRF: dict[type[exceptions.APIException], Code] = {
    exceptions.ParseError: Code.MALFORMED,
    exceptions.NotAuthenticated: Code.UNAUTHENTICATED,
    exceptions.AuthenticationFailed: Code.UNAUTHENTICATED,
    exceptions.PermissionDenied: Code.FORBIDDEN,
    exceptions.NotFound: Code.NOT_FOUND,
    exceptions.MethodNotAllowed: Code.METHOD_NOT_ALLOWED,
    exceptions.NotAcceptable: Code.NOT_ACCEPTABLE,
    exceptions.UnsupportedMediaType: Code.UNSUPPORTED_MEDIA_TYPE,
    exceptions.Throttled: Code.THROTTLED,
}


def answer(
    code: Code, detail: str, *, request: Any, errors: Any = (), retry_after: float | None = None
) -> HttpResponse:
    """The problem+json response of a code."""
    status = STATUS[code]
    problem = Problem(
        status=int(status),
        code=code,
        title=status.phrase,
        detail=detail,
        request_id=getattr(request, "request_id", ""),
        retryable=code in RETRYABLE,
        errors=list(errors),
        protocols=list(SPOKEN) if code is Code.PROTOCOL_UNSUPPORTED else [],
    )
    response = HttpResponse(encode(problem), status=int(status), content_type="application/problem+json")
    response["Cache-Control"] = "no-store"
    if retry_after is not None:
        response["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if status is HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="modelforge"'
    return response


def handle(fault: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF's exception handler; None lets a bug through to Django's own handling (logged, answered by handler500)."""
    request = context["request"]
    match fault:
        case Refused():
            after = fault.retry_after.total_seconds() if fault.retry_after else None
            return answer(fault.code, fault.detail, request=request, errors=fault.errors, retry_after=after)
        case exceptions.ValidationError():
            errors = list(_flatten(fault.detail, ""))
            detail = "; ".join(f"{e.field}: {e.detail}" if e.field else e.detail for e in errors[:3])
            return answer(Code.INVALID, detail, request=request, errors=errors)
        case exceptions.Throttled():
            detail = "Too many requests; wait as Retry-After says."
            return answer(Code.THROTTLED, detail, request=request, retry_after=getattr(fault, "wait", None) or 1)
        case exceptions.PermissionDenied() | RawPostDataException() if unread := fault_of(request.META):
            return unreadable(unread, request)  # the CSRF check of a session had swallowed it
        case exceptions.APIException():
            code = next((code for kind, code in _OF_DRF.items() if isinstance(fault, kind)), Code.INTERNAL)
            response = answer(code, str(fault.detail), request=request)
            if isinstance(fault, exceptions.MethodNotAllowed):
                response["Allow"] = ", ".join(context["view"].allowed_methods)
            return response
        case RecursionError():
            return answer(Code.MALFORMED, "The body is nested too deep.", request=request)
        case UnreadablePostError():
            return unreadable(fault, request)
        case Http404():
            return answer(Code.NOT_FOUND, "There is nothing at this address.", request=request)
        case PermissionDenied():
            return answer(Code.FORBIDDEN, "This is not yours to see.", request=request)
        case OperationalError() | InterfaceError():
            return unavailable(request)
    return None


def _of(kind: type[BaseException], fault: BaseException | None) -> bool:
    """Whether this is what it came of, how often it was wrapped since."""
    return fault is not None and (isinstance(fault, kind) or _of(kind, fault.__cause__))


def unreadable(fault: OSError, request: Any) -> HttpResponse:
    """The body did not arrive whole: 503 where the server had no place to wait for it, 400 where it ended early."""
    if is_busy(fault):
        after = COME_BACK_AFTER.total_seconds()
        return answer(Code.UNAVAILABLE, f"{fault} Try again.", request=request, retry_after=after)
    return answer(Code.MALFORMED, f"{fault} Send it again, whole.", request=request)


def is_busy(fault: OSError) -> bool:
    """Whether it was not the sender's doing that the body was not read."""
    return _of(Busy, fault)


def unavailable(request: Any) -> HttpResponse:
    """The database does not answer: 503, and come back."""
    after, detail = COME_BACK_AFTER.total_seconds(), "The database does not answer; try again."
    return answer(Code.UNAVAILABLE, detail, request=request, retry_after=after)


def _flatten(detail: Any, path: str) -> Iterator[FieldError]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            step = "" if name == "non_field_errors" else str(name)
            yield from _flatten(inner, f"{path}.{step}".strip("."))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            yield from _flatten(inner, f"{path}[{position}]" if isinstance(inner, dict) else path)
    else:
        yield FieldError(field=path, detail=str(detail))


def is_api(request: HttpRequest) -> bool:
    """Whether the one who asks is a machine: everything outside the pages."""
    return not request.path.startswith(("/admin", "/static"))
