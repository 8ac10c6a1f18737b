"""Gives every request an id, and turns a database that does not answer into 503."""

import re
import uuid
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from agent.protocol import REQUEST_ID_HEADER
from modelforge import errors

_META = "HTTP_" + REQUEST_ID_HEADER.upper().replace("-", "_")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestMiddleware:
    """The outermost middleware: ``request.request_id``, told back in ``X-Request-ID``."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get(_META)
        request_id = given if given and _PLAIN.fullmatch(given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        response = self.get_response(request)
        response[REQUEST_ID_HEADER] = request_id
        return response

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """503 for a database that does not answer; anything else goes on to handler500."""
        if isinstance(fault, OperationalError | InterfaceError) and errors.is_api(request):
            return errors.unavailable(request)
        return None
