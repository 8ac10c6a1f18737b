"""What is answered where no view does: problem+json for machines, pages for people."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.log import log_response
from django.views import defaults

from agent.protocol import Code
from modelforge import bodies, errors


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


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form that is none of ours; 503 or 400 where the check only found no token because it could not read."""
    fault = bodies.fault_of(request.META)
    if fault is not None:
        response = _unread_form(request, fault)
        log_response("%s", str(fault), response=response, request=request)  # else Django logs it as a forgery
        return response
    if errors.is_api(request):
        return errors.answer(Code.FORBIDDEN, f"The CSRF check failed: {reason}", request=request)
    return render(request, "403_csrf.html", {"reason": reason}, status=403)


def _unread_form(request: HttpRequest, fault: OSError) -> HttpResponse:
    if errors.is_api(request):
        return errors.unreadable(fault, request)
    if not errors.is_busy(fault):
        return render(request, "unread.html", status=400)
    seconds = int(errors.COME_BACK_AFTER.total_seconds())
    response = render(request, "503.html", {"seconds": seconds}, status=503)
    response["Retry-After"] = str(seconds)
    return response
