"""One origin of the stand-in Hub: a loopback port that answers with threads, and lets go wrong what a fault says."""

import itertools
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.hub.answers import Answer
from tests.hub.contents import OnDisk
from tests.hub.faults import Fault, Request

Respond = Callable[[Request], tuple[Answer | None, Fault]]
"""The answer to a request and what goes wrong with it; None: there is none."""

SLICE_SECONDS = 0.02  # of a paced body at once


class Gone(Exception):
    """The connection is over."""


class Origin:
    """Listens on a port of 127.0.0.1 that it keeps when it is stopped and started again."""

    def __init__(self, respond: Respond, context: ssl.SSLContext | None = None, name: str = "127.0.0.1") -> None:
        self.latency_seconds = 0.0  # before each answer
        self.bytes_per_second: float | None = None  # of each connection
        self.port = 0
        self.name = name
        self.scheme = "https" if context else "http"
        self._respond, self._context = respond, context
        self.connections = itertools.count(1)
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.scheme}://{self.name}:{self.port}"

    def start(self) -> None:
        """Listen."""
        self._server = _Server(self, self._respond, self._context)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and end those that are open."""
        if self._server is not None:
            self._server.end()
            self._server = None


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __init__(self, origin: Origin, respond: Respond, context: ssl.SSLContext | None) -> None:
        self.origin, self.respond, self.context = origin, respond, context
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", origin.port), _Handler)

    def end(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread, so that a handshake holds up nobody else."""
        connection: socket.socket = request
        if self.context is not None:
            connection = self.context.wrap_socket(request, server_side=True)
        with self._lock:
            self._open.add(connection)
        try:
            super().finish_request(connection, client_address)
        finally:
            with self._lock:
                self._open.discard(connection)
            if connection is not request:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away, or do not believe our certificate, are what tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every small answer takes 40 ms
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._number = next(self.server.origin.connections)

    def do_GET(self) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        request = Request("other", self.command, self.path, headers, connection=self._number, at=time.monotonic())
        request.range = _range(headers.get("range", ""))
        answer, fault = self.server.respond(request)
        try:
            self._pause(self.server.origin.latency_seconds + fault.wait)
            if fault.meanwhile is not None:
                fault.meanwhile()
            if answer is None or fault.drop:
                if fault.silent:
                    self.server.closing.wait()
                raise Gone
            self._send(request, answer, fault)
        except (Gone, OSError):
            self.close_connection = True
        finally:
            request.ended_at = time.monotonic()

    do_HEAD = do_POST = do_GET

    def _send(self, request: Request, answer: Answer, fault: Fault) -> None:
        request.status = answer.status
        self.send_response_only(answer.status)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        if answer.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif not any(name.lower() == "content-length" for name in answer.headers):
            self.send_header("Content-Length", str(answer.length))
        self.end_headers()
        if self.command != "HEAD":
            self._body(request, answer, fault)
        request.whole = True

    def _body(self, request: Request, answer: Answer, fault: Fault) -> None:
        stops = [at for at in (fault.cut_at, fault.stall_at) if at is not None]
        left = min([answer.length, *stops])
        paced = fault.bytes_per_second or self.server.origin.bytes_per_second
        odd = paced or stops or answer.chunked or self.server.context is not None
        if isinstance(answer.content, OnDisk) and not odd:
            self._from_disk(request, answer, answer.content)
            return
        for piece in answer.content.pieces(answer.start, left):
            self._write(request, piece, fault, chunked=answer.chunked)
        if fault.stall_at is not None and fault.stall_at < answer.length:
            self.server.closing.wait()
        if left < answer.length or request.bytes_sent < left:
            raise Gone
        if answer.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _write(self, request: Request, piece: bytes | memoryview, fault: Fault, *, chunked: bool) -> None:
        at = 0
        while at < len(piece):
            pace = fault.bytes_per_second or self.server.origin.bytes_per_second  # it may change under way
            step = max(int(pace * SLICE_SECONDS), 1) if pace else len(piece)
            part = piece[at : at + step]
            at += step
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), bytes(part)) if chunked else part)
            request.bytes_sent += len(part)
            if pace:
                self._pause(len(part) / pace)

    def _from_disk(self, request: Request, answer: Answer, content: OnDisk) -> None:
        at, end = answer.start, answer.start + answer.length
        with content.path.open("rb") as file:
            while at < end:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), at, end - at)
                if not sent:
                    raise Gone
                at += sent
                request.bytes_sent += sent

    def _pause(self, seconds: float) -> None:
        if seconds > 0 and self.server.closing.wait(seconds):
            raise Gone

    def log_message(self, *_: object) -> None:
        """Nothing: requests are recorded."""


def _range(header: str) -> tuple[int, int | None] | None:
    """First and last byte; (-n, None) for the last n bytes."""
    unit, _, asked = header.partition("=")
    first, _, last = asked.partition("-")
    if unit != "bytes" or "," in asked or not (first + last).isdigit():
        return None
    if not first:
        return -int(last), None
    return int(first), int(last) if last else None
