"""The client compares its own clock with the control plane's."""

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.client import parse_headers

import pytest

from agent import protocol, wire
from agent.client import Client
from agent.config import Link
from tests.agent.scripted import CREDENTIAL, http_date
from tests.agent.test_client import BEAT_REPLY


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_the_clocks_are_compared_by_the_answers_date(days: int) -> None:
    """Field case 21."""
    date = http_date(datetime.now(UTC) + timedelta(days=days))
    head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve_once, args=(listener, head.encode() + json.dumps(BEAT_REPLY).encode()))
        thread.start()
        client = Client(Link(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
        thread.join(5)
    client.close()
    assert client.skew is not None
    assert abs(client.skew + timedelta(days=days)) < timedelta(seconds=5)


def _serve_once(listener: socket.socket, answer: bytes) -> None:
    """Reads the whole question first: closing over unread bytes resets the connection, and the answer with it."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as question:
        length = parse_headers(question).get("Content-Length", "0") if question.readline() else "0"
        question.read(int(length))
        connection.sendall(answer)
