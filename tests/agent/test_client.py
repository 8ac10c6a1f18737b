"""The client over real sockets: whom it believes, what it follows, and what it says when it does not get through."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent import protocol, wire
from agent.client import MAX_REPLY_BYTES, Client
from agent.config import Link
from agent.trouble import Faltering, NotModelForge, Redirected, Refused, Trouble, Unreachable
from tests.agent.scripted import CREDENTIAL, DROP, Answer, ControlPlane, page, problem, said
from tests.parts.ports import until

BEAT_REPLY = {"heartbeat_interval_seconds": 15, "telemetry_interval_seconds": 60}


def ask(url: str, *, timeout: float = 5, proxy: str | None = None) -> wire.BeatReply:
    client = Client(Link(url=url, timeout=timedelta(seconds=timeout), proxy=proxy))
    try:
        return client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    finally:
        client.close()


def test_a_message_carries_credential_protocol_and_json(plane: ControlPlane) -> None:
    assert ask(plane.url).telemetry_interval_seconds == 1
    (request,) = plane.requests
    assert request.bearer == CREDENTIAL
    assert request.headers["x-modelforge-protocol"] == "1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("modelforge-agent/")


def test_one_connection_serves_many_beats(plane: ControlPlane) -> None:
    client = Client(Link(url=plane.url))
    for _ in range(5):
        client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    client.close()
    assert len({request.peer for request in plane.requests}) == 1


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        (
            "https://modelforge.example" + protocol.HEARTBEAT,
            "MODELFORGE_AGENT_CONTROL_PLANE_URL=https://modelforge.example.",
        ),
        ("https://modelforge.example" + protocol.HEARTBEAT + "/", "CONTROL_PLANE_URL=https://modelforge.example."),
        ("/elsewhere", "to the address that answers without a redirect"),
        ("", "points to nowhere"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed_and_says_which_address_to_set(
    plane: ControlPlane, location: str, hint: str, status: int
) -> None:
    """Field case 27."""
    plane.always(protocol.HEARTBEAT, page(status, Location=location))
    with pytest.raises(Redirected) as error:
        ask(plane.url)
    assert hint in str(error.value)
    assert len(plane.requests) == 1
    assert not error.value.parks


def test_a_refusal_keeps_its_code_and_request_id(plane: ControlPlane) -> None:
    plane.always(protocol.HEARTBEAT, problem(403, "node_disabled"))
    with pytest.raises(Refused) as error:
        ask(plane.url)
    assert (error.value.code, error.value.status, error.value.request_id) == ("node_disabled", 403, "req-123")
    assert error.value.parks


def test_a_protocol_refusal_says_which_are_spoken(plane: ControlPlane) -> None:
    """Field case 25."""
    plane.always(protocol.HEARTBEAT, problem(426, "protocol_unsupported", protocols=[2, 3]))
    with pytest.raises(Refused, match=r"spoken there: 2, 3"):
        ask(plane.url)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_refusal_does_not_park_and_tells_how_long_to_wait(plane: ControlPlane, status: int) -> None:
    answer = problem(status, "unavailable", retryable=True)
    plane.always(protocol.HEARTBEAT, Answer(status, answer.body, dict(answer.headers) | {"Retry-After": "7"}))
    with pytest.raises(Refused) as error:
        ask(plane.url)
    assert not error.value.parks
    assert error.value.retry_after == timedelta(seconds=7)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 408])
def test_a_gateways_own_error_page_is_waited_out(plane: ControlPlane, status: int) -> None:
    """Field case 40."""
    plane.always(protocol.HEARTBEAT, page(status, Retry_After="9"))
    with pytest.raises(Faltering) as error:
        ask(plane.url)
    assert not error.value.parks
    assert error.value.retry_after == timedelta(seconds=9)


@pytest.mark.parametrize(
    "answer",
    [
        page(200),
        page(404),
        page(401),
        said([]),  # type: ignore[arg-type]
        said({"heartbeat_interval_seconds": "soon"}),
        said({"heartbeat_interval_seconds": 15}),
        Answer(200, b"{", {"Content-Type": "application/json"}),
        Answer(200, b"\xff\xfe", {"Content-Type": "application/json"}),
        Answer(404, b'{"detail": "no code here"}', {"Content-Type": "application/json"}),
        said(BEAT_REPLY | {"padding": "x" * MAX_REPLY_BYTES}),
    ],
)
def test_what_is_not_this_api_is_named_as_such(plane: ControlPlane, answer: Answer) -> None:
    plane.always(protocol.HEARTBEAT, answer)
    with pytest.raises(NotModelForge, match="MODELFORGE_AGENT_CONTROL_PLANE_URL"):
        ask(plane.url)


def test_a_newer_control_plane_may_say_more(plane: ControlPlane) -> None:
    plane.always(protocol.HEARTBEAT, said(BEAT_REPLY | {"news": [1, 2]}))
    assert ask(plane.url).heartbeat_interval_seconds == 15


def test_a_dropped_answer_is_a_broken_connection(plane: ControlPlane) -> None:
    plane.answer(protocol.HEARTBEAT, DROP)
    assert _kind(plane.url) == "broken"
    assert ask(plane.url)


def test_nobody_listening_is_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert _kind(f"http://127.0.0.1:{unused.getsockname()[1]}") == "refused"


def test_troubles_leave_no_descriptor_open(plane: ControlPlane) -> None:
    """Hundreds of failed tries over one outage must not use up the process's files."""
    client = Client(Link(url=plane.url, timeout=timedelta(seconds=5)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        plane.answer(protocol.HEARTBEAT, DROP, page(503), page(301, Location="/x"), page(200), problem(401, "x"))
        for _ in range(5):
            with pytest.raises(Trouble):
                client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    # One connection is kept, at both of its ends; the server's threads close theirs when they see the client's end.
    until(lambda: len(os.listdir("/proc/self/fd")) <= before + 2, "as many descriptors as before")
    client.close()


def test_an_unknown_name_is_a_dns_trouble() -> None:
    assert _kind("http://modelforge.invalid") == "dns"


@pytest.fixture
def dripping() -> Iterator[str]:
    """A server that answers one byte at a time and never ends."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
            try:
                while not stop.wait(0.05):
                    connection.sendall(b" ")
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    listener.close()
    thread.join(5)


def test_a_server_that_drips_bytes_for_ever_is_left_in_time(dripping: str) -> None:
    """Field case 36."""
    assert _kind(dripping, timeout=0.5) == "timeout"


def test_a_server_that_says_nothing_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert _kind(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3) == "timeout"


def test_a_netrc_does_not_replace_the_credential(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    ask(plane.url)
    assert plane.requests[0].bearer == CREDENTIAL


def test_one_request_may_have_less_time_than_the_others() -> None:
    """A lease that ends soon: an answer that comes later helps nobody."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(Link(url=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=timedelta(seconds=30)))
        started = time.monotonic()
        for within in (timedelta(seconds=0.2), timedelta()):
            with pytest.raises(Unreachable):
                client.call("POST", protocol.CLAIM, bearer=CREDENTIAL, answer=wire.ClaimReply, within=within)
        assert time.monotonic() - started < 5
        client.close()


def _kind(url: str, *, timeout: float = 5) -> str:
    with pytest.raises(Unreachable) as error:
        ask(url, timeout=timeout)
    assert isinstance(error.value, Trouble)
    assert not error.value.parks
    return error.value.kind
