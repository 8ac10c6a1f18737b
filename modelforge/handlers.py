"""What is answered where no view does: problem+json for machines, Django's own pages for people."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views import defaults

from agent.protocol import Code
from modelforge import errors


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400, or 413 for a body that Django itself found too long."""
    if not errors.is_api(request):
        return defaults.bad_request(request, exception)
    if isinstance(exception, RequestDataTooBig):
        return errors.answer(Code.BODY_TOO_LARGE, "The body is longer than is taken here.", request=request)
    return errors.answer(Code.MALFORMED, "The request cannot be understood.", request=request)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """403."""
    if not errors.is_api(request):
        return defaults.permission_denied(request, exception)
    return errors.answer(Code.FORBIDDEN, "This is not yours to see.", request=request)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404; an unknown path below the API is told where the known ones are."""
    if not errors.is_api(request):
        return defaults.page_not_found(request, exception)
    detail = "There is nothing at this address; /api/schema lists what there is."
    return errors.answer(Code.NOT_FOUND, detail, request=request)


def server_error(request: HttpRequest) -> HttpResponse:
    """500: the log holds the cause under this request id; nothing of it is told."""
    if not errors.is_api(request):
        return defaults.server_error(request)
    detail = "Something went wrong here; the log tells more under this request id."
    return errors.answer(Code.INTERNAL, detail, request=request)
