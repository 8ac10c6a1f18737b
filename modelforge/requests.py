"""The outermost layer of a request: its id, its bounds, its one line in the log, and 503 where the database is away."""

import ipaddress
import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from agent.protocol import HEARTBEAT, JOBS, REQUEST_ID_HEADER, Code
from modelforge import errors, lane

log = structlog.get_logger("modelforge.request")

PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by what watches the container, under any host name."""

PAGES_MAY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
"""Nothing from elsewhere; inline and eval, because the admin pages' Alpine.js works by them."""

_META = "HTTP_" + REQUEST_ID_HEADER.upper().replace("-", "_")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = PROBES | {HEARTBEAT, "/metrics"}


class RequestMiddleware:
    """Gives the request ``request.request_id``, told back in ``X-Request-ID``, and tells it in the log."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        given = request.META.get(_META)
        request_id = given if given and _PLAIN.fullmatch(given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        structlog.contextvars.bind_contextvars(request_id=request_id)
        if settings.TRUST_PROXY:
            _take_the_clients_address(request)
        try:
            response = lane.answer(request) or self._out_of_bounds(request) or self.get_response(request)
            response[REQUEST_ID_HEADER] = request_id
            if response.get("Content-Type", "").startswith("text/html"):
                response.headers.setdefault("Content-Security-Policy", PAGES_MAY)
            if not response.streaming and "Content-Length" not in response:  # else each small answer goes out chunked
                response["Content-Length"] = str(len(response.content))
            self._tell(request, response, started)
        finally:
            structlog.contextvars.clear_contextvars()
        return response

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """503 for a database that does not answer; anything else goes on to handler500."""
        if isinstance(fault, OperationalError | InterfaceError) and errors.is_api(request):
            log.warning("the database does not answer", fault=str(fault))
            return errors.unavailable(request)
        return None

    def _out_of_bounds(self, request: HttpRequest) -> HttpResponse | None:
        """A host name that is not ours, or a body longer than any endpoint takes, goes no further."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if errors.is_api(request) and (not length.isdigit() or int(length) > most):
            detail = f"The body may hold {most} bytes; this one says it has {length[:20]}."
            return errors.answer(Code.BODY_TOO_LARGE, detail, request=request)
        if errors.is_api(request) and "HTTP_TRANSFER_ENCODING" in request.META:  # Django would read it as empty
            detail = "Send the body with its Content-Length, not in chunks."
            return errors.answer(Code.LENGTH_REQUIRED, detail, request=request)
        if request.path not in PROBES:
            try:
                request.get_host()
            except DisallowedHost:
                detail = "This host name is not served here; an administrator adds it to MODELFORGE_ALLOWED_HOSTS."
                return errors.answer(Code.MALFORMED, detail, request=request)
        return None

    def _tell(self, request: HttpRequest, response: HttpResponse, started: float) -> None:
        """One line a request; probes, beats and progress that go well are not news."""
        if response.status_code < 400 and _is_quiet(request.path):
            return
        told = log.warning if response.status_code >= 500 else log.info
        told(
            "request",
            method=request.method,
            path=request.path,
            status=response.status_code,
            milliseconds=round((time.perf_counter() - started) * 1000, 1),
            address=request.META.get("REMOTE_ADDR", ""),
        )


def _is_quiet(path: str) -> bool:
    of_a_job = path.startswith(f"{JOBS}/") and path.endswith("/progress")
    return path in _QUIET or of_a_job or path.startswith(settings.STATIC_URL)


def _take_the_clients_address(request: HttpRequest) -> None:
    """The last address of the header: our own proxy put it there; what stands before it anybody may have said."""
    meta = "HTTP_" + settings.CLIENT_HEADER.upper().replace("-", "_")
    last = request.META.get(meta, "").rpartition(",")[2].strip()
    try:
        request.META["REMOTE_ADDR"] = str(ipaddress.ip_address(last))
    except ValueError:
        return
