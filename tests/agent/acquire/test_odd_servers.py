"""Servers that speak HTTP in odd ways, or not at all: right bytes are taken, everything else ends in a failure."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.acquire.fetching.fetch import fetch
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.terms import Brake, Failed, Plan, PlannedFile, Tally
from tests.agent.acquire.fetching import LIMITS

DATA = b"0123456789" * 50
IMPATIENT = replace(LIMITS, connections=1, stall=timedelta(seconds=0.4), tries=2)
Serve = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that reads each request's head and then does as it likes; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def start(answer: Callable[[socket.socket], None]) -> str:
        def talk(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(4096)
                answer(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def ends(url: str, folder: Path) -> str:
    blob = hashlib.sha1(b"blob %d\0" % len(DATA) + DATA, usedforsecurity=False).hexdigest()
    plan = Plan("org/m", "0" * 40, (PlannedFile("f.txt", len(DATA), git_sha1=blob),))
    try:
        fetch(
            plan,
            partial=folder,
            source=Source(endpoint=url),
            brake=Brake(),
            tally=Tally(),
            pace=Pace(),
            limits=IMPATIENT,
            mismatch=lambda file, path, found: None,
        )
    except Failed as failed:
        return failed.code if "SECRET" not in failed.detail else "the query is quoted"
    assert (folder / "snapshot" / "f.txt").read_bytes() == DATA
    return "done"


def says(*pieces: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)  # of the server

    return answer


OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(DATA)

RIGHT = {
    "HTTP/1.0 that ends with the connection": says(b"HTTP/1.0 200 OK\r\n\r\n", DATA),
    "a connection that is closed after it": says(OK, LENGTH, b"Connection: close\r\n\r\n", DATA),
    "chunks": says(OK, b"Transfer-Encoding: chunked\r\n\r\n", b"1f4\r\n", DATA, b"\r\n0\r\n\r\n"),
    "an interim answer before": says(b"HTTP/1.1 100 Continue\r\n\r\n", OK, LENGTH, b"\r\n", DATA),
    "byte by byte": says(OK, LENGTH, b"\r\n", *(DATA[at : at + 1] for at in range(len(DATA)))),
    "names in other letters": says(OK, b"CONTENT-length: %d\r\n\r\n" % len(DATA), DATA),
    "identity by name": says(OK, LENGTH, b"Content-Encoding: identity\r\n\r\n", DATA),
}
WRONG = {
    "no HTTP": says(b"SSH-2.0-OpenSSH_9.2\r\n" * 100),
    "nothing": says(),
    "a head without end": says(OK, *(b"X-%d: y\r\n" % n for n in range(500))),
    "a line without end": says(OK, b"X: " + b"y" * 100_000),
    "half a head": says(OK, b"Content-Le"),
    "a length that is no number": says(OK, b"Content-Length: many\r\n\r\n", DATA[:10]),
    "a negative length": says(OK, b"Content-Length: -5\r\n\r\n", DATA[:10]),
    "too few bytes": says(OK, LENGTH, b"\r\n", DATA[:-1]),
    "too few chunks": says(OK, b"Transfer-Encoding: chunked\r\n\r\n", b"1f4\r\n", DATA[:100]),
    "chunks that are none": says(OK, b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n", DATA),
    "more bytes than planned, to the end of the connection": says(b"HTTP/1.0 200 OK\r\n\r\n", DATA, b"and more"),
    "another status": says(b"HTTP/1.1 299 Odd\r\n", LENGTH, b"\r\n", DATA),
    "a redirect to nowhere": says(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
    "a redirect with odd letters": says(b"HTTP/1.1 302 Found\r\nLocation: /\xff?SECRET\r\nContent-Length: 0\r\n\r\n"),
    "a redirect to a bad port": says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/?SECRET\r\n\r\n"),
}
SLOW = {
    "a head that drips": says(*(bytes([byte]) for byte in OK + b"X: " + b"y" * 100), pause=0.05),
    "a redirect whose body drips": says(
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 1000\r\n\r\n", *[b"x"] * 20, pause=0.6
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_bytes_are_taken_however_they_are_told(serve: Serve, tmp_path: Path, name: str) -> None:
    assert ends(serve(RIGHT[name]), tmp_path) == "done"


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_a_source_that_is_not_there(serve: Serve, tmp_path: Path, name: str) -> None:
    assert ends(serve(WRONG[name]), tmp_path) == "source_unavailable"


@pytest.mark.parametrize("name", SLOW)
def test_a_server_that_drips_before_the_body_does_not_hold_us_for_long(serve: Serve, tmp_path: Path, name: str) -> None:
    began = time.monotonic()
    assert ends(serve(SLOW[name]), tmp_path) in ("stalled", "source_unavailable")
    assert time.monotonic() - began < 8
