"""Callers who begin a body and send no more, on the real web server: pages go on, and so does all else later."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.parts.control_plane import ADMIN_TOKEN, ControlPlane
from tests.parts.ports import until

ORDER = "/api/v1/admin/node-enrollments"
SENDERS = 40
"""More than the web server has threads."""


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    made = ControlPlane(tmp_path).as_deployed()
    try:
        yield made.start()
    finally:
        made.remove()


def begin(control_plane: ControlPlane) -> socket.socket:
    """An order whose body does not come."""
    sender = socket.create_connection(("127.0.0.1", control_plane.port))
    head = [f"POST {ORDER} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Content-Length: 100"]
    head.append(f"X-ModelForge-Admin-Token: {ADMIN_TOKEN}")
    sender.sendall("\r\n".join([*head, "", ""]).encode())
    return sender


def status(control_plane: ControlPlane, method: str, path: str) -> int:
    """What one caller hears on a connection of his own."""
    connection = http.client.HTTPConnection("127.0.0.1", control_plane.port, timeout=20)
    try:
        headers = control_plane.headers | {"Content-Type": "application/json"}
        connection.request(method, path, b"{}" if method == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.walk
@pytest.mark.timeout(300)
def test_pages_are_answered_while_more_bodies_never_come_than_there_are_threads(control_plane: ControlPlane) -> None:
    assert status(control_plane, "POST", ORDER) == 201
    with ExitStack() as senders:
        for _ in range(SENDERS):
            senders.enter_context(begin(control_plane))
        until(lambda: status(control_plane, "POST", ORDER) == 503, "an order is asked to come back", within=60)
        for path in ("/healthz", "/admin/login/", "/api/v1/hardware/nodes") * 5:
            assert status(control_plane, "GET", path) == 200
    until(lambda: status(control_plane, "POST", ORDER) == 201, "orders are taken again", within=60)
