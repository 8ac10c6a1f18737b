"""Bodies that never come, or are too long, end at the proxy: no web process waits for them."""

import socket
import ssl
from contextlib import ExitStack

import pytest

from tests.deploy.parts import NAME, Stack
from tests.parts.ports import until

ORDERS, LOGIN = "/api/v1/admin/node-enrollments", "/admin/login/"
SENDERS = 40
"""More than a web server has threads."""


def begin(stack: Stack, path: str, length: int) -> ssl.SSLSocket:
    """A request of the operator's whose body does not come."""
    context = ssl.create_default_context(cafile=str(stack.site.ca))
    sender = context.wrap_socket(socket.create_connection(("127.0.0.1", stack.site.port)), server_hostname=NAME)
    head = [f"POST {path} HTTP/1.1", f"Host: {NAME}", f"Content-Length: {length}", f"Cookie: csrftoken={'c' * 32}"]
    head += ["Content-Type: application/json", f"X-ModelForge-Admin-Token: {stack.site.admin_token}"]
    sender.sendall("\r\n".join([*head, "", ""]).encode())
    return sender


@pytest.mark.parametrize("path", [ORDERS, LOGIN])
def test_orders_go_on_while_more_bodies_never_come_than_there_are_threads(stack: Stack, path: str) -> None:
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    with ExitStack() as senders:
        for _ in range(SENDERS):
            senders.enter_context(begin(stack, path, 100))
        for _ in range(5):
            stack.site.api("POST", "admin/node-enrollments", {"expires_in_seconds": 60})


def test_a_form_that_is_longer_than_any_is_refused_at_the_proxy(stack: Stack) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    told = stack.site.send("POST", LOGIN, b"username=" + b"x" * 100_000, headers=form)
    assert (told.status, told.headers["content-type"]) == (413, "text/html; charset=utf-8")
    assert stack.site.send("POST", LOGIN, b"username=" + b"x" * 90_000, headers=form).status == 403  # no CSRF token


def test_a_long_body_of_a_script_is_passed_on(stack: Stack) -> None:
    body = {"expires_in_seconds": 60, "display_name": "x" * 100_000}
    headers = {"X-ModelForge-Admin-Token": stack.site.admin_token}
    told = stack.site.ask("POST", ORDERS, body, headers=headers)
    assert (told.status, told.json["errors"][0]["field"]) == (400, "display_name")
