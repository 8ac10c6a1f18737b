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
from django.urls import resolve

from agent import protocol

PATHS = frozenset(
    {protocol.ENROLL, protocol.HEARTBEAT, protocol.FACTS, protocol.CREDENTIAL, protocol.GOODBYE},
)


@cache
def view_of(path: str) -> Callable[[HttpRequest], HttpResponse]:
    """The view of an agent's endpoint, with the layer that turns a bug into handler500."""
    return cast(Callable[[HttpRequest], HttpResponse], convert_exception_to_response(resolve(path).func))


def answer(request: HttpRequest) -> HttpResponse | None:
    """What the agents' endpoint answers; None where the address is not one of theirs."""
    return view_of(request.path_info)(request) if request.path_info in PATHS else None
