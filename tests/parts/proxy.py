"""A small proxy, reverse or forward, that loses replies, waits, cuts, or answers in the server's place."""

import http.client
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    lose_reply: bool = False  # the server acts, and its reply never arrives
    cut_reply: bool = False  # half of the body arrives
    wait_seconds: float = 0
    status: int = 0  # answered here; the server hears nothing
    headers: Mapping[str, str] = field(default_factory=dict)


FINE = Fault()
Rule = Callable[[str], Fault]


def always(fault: Fault) -> Rule:
    """Every request goes wrong like this."""
    return lambda _: fault


class Proxy:
    """Forwards to ``port``; ``rule`` says for each path what goes wrong."""

    def __init__(self, port: int) -> None:
        self.rule = always(FINE)
        self.seen: list[tuple[str, str, int]] = []  # method, path, the server's status (0: not asked)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._forward(self, port)

            do_GET = do_PUT = do_POST

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _forward(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if "://" in handler.path:  # asked as a forward proxy, by the whole address
            handler.path = "/" + handler.path.split("/", 3)[3]
        fault = self.rule(handler.path)
        time.sleep(fault.wait_seconds)
        if fault.status:
            self.seen.append((handler.command, handler.path, 0))
            _answer(handler, fault.status, dict(fault.headers), b"")
            return
        upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            kept = {name: value for name, value in handler.headers.items() if name.lower() != "connection"}
            upstream.request(handler.command, handler.path, body, kept)
            reply = upstream.getresponse()
            said = reply.read()
        except OSError:
            self.seen.append((handler.command, handler.path, 0))
            _answer(handler, 502, {}, b"")
            return
        finally:
            upstream.close()
        self.seen.append((handler.command, handler.path, reply.status))
        if fault.lose_reply:
            handler.close_connection = True
            return
        headers = {name: value for name, value in reply.getheaders() if name.lower() not in _HOP_BY_HOP}
        _answer(handler, reply.status, headers, said, whole=not fault.cut_reply)


_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


def _answer(
    handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes, *, whole: bool = True
) -> None:
    handler.send_response_only(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body if whole else body[: len(body) // 2])
    handler.close_connection = not whole
