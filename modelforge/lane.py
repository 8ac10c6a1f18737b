"""The agents' short way: their endpoints need no session, no login and no page's protection, so they skip all that.

A beat is most of what a control plane hears. The eight layers of middleware that pages and scripts need cost a third of
it (``make bench``), and none of them does anything for an agent: its view bounds the body, authenticates, and answers
problems itself.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from agent import protocol

PATHS = frozenset(
    {protocol.ENROLL, protocol.HEARTBEAT, protocol.FACTS, protocol.CREDENTIAL, protocol.GOODBYE, protocol.CLAIM},
)

View = Callable[..., HttpResponse]


@cache
def view_of(path: str) -> Callable[[HttpRequest], HttpResponse]:
    """The view of an agent's endpoint, with the layer that turns a bug into handler500."""
    return _guarded(resolve(path).func)


@cache
def _guarded(view: View) -> Callable[[HttpRequest], HttpResponse]:
    def answered(request: HttpRequest) -> HttpResponse:
        match = request.resolver_match
        return view(request, **match.kwargs) if match is not None else view(request)

    return cast(Callable[[HttpRequest], HttpResponse], convert_exception_to_response(answered))


def answer(request: HttpRequest) -> HttpResponse | None:
    """What the agents' endpoint answers; None where the address is not one of theirs."""
    path = request.path_info
    if path in PATHS:
        return view_of(path)(request)
    if not path.startswith(f"{protocol.JOBS}/"):
        return None
    try:
        request.resolver_match = resolve(path)  # it carries the job's id
    except Resolver404:
        return None
    return _guarded(request.resolver_match.func)(request)
