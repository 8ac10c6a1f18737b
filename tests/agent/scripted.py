"""A control plane that answers as a test wrote down, over real sockets."""

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent import protocol

CREDENTIAL = "mfn_n0de0001_" + "s" * 40 + "_0a1b2c3d"
RENEWED = "mfn_n0de0001_" + "t" * 40 + "_4e5f6a7b"
TOKEN = "mfe_inv1te01_" + "u" * 40 + "_8c9d0e1f"


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: int = 0  # the client's port: the same one for requests over one connection

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def bearer(self) -> str:
        """The token or credential that was shown."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True)
class Answer:
    """What is answered; ``drop`` closes the connection instead, after the request was read."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    drop: bool = False


def said(body: Mapping[str, Any], status: int = 200, **headers: str) -> Answer:
    """A JSON answer."""
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"} | headers)


def problem(status: int, code: str, **more: Any) -> Answer:
    """A refusal in the protocol's words."""
    body = {"status": status, "code": code, "title": code, "detail": f"because of {code}"} | more
    headers = {"Content-Type": "application/problem+json", "X-Request-ID": "req-123"}
    return Answer(status, json.dumps(body).encode(), headers)


def page(status: int, text: str = "<html>hello</html>", **headers: str) -> Answer:
    """Somebody else's page."""
    return Answer(
        status, text.encode(), {"Content-Type": "text/html"} | {k.replace("_", "-"): v for k, v in headers.items()}
    )


DROP = Answer(drop=True)


class ControlPlane:
    """Answers enrollments, beats, facts, claims (there is nothing to do), renewals and goodbyes.

    ``answers[path]`` is used up first, then the rule.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, deque[Answer]] = {}
        self.rules: dict[str, Callable[[Request], Answer]] = {
            protocol.ENROLL: lambda request: said(
                {
                    "node_id": request.json["node_id"],
                    "credential": CREDENTIAL,
                    "display_name": "server01",
                    "heartbeat_interval_seconds": 1,
                },
                201,
            ),
            protocol.HEARTBEAT: lambda _: self.beat_reply(),
            protocol.FACTS: lambda _: said({"facts_digest": "d", "changed": True}),
            protocol.CLAIM: lambda _: said({}),
            protocol.CREDENTIAL: lambda _: said({"credential": RENEWED, "old_dies_at": "2027-01-01T00:00:00Z"}),
            protocol.GOODBYE: lambda _: Answer(204, b"", {}),
            "/healthz": lambda _: said({"status": "ok"}),
        }
        self.interval = 1.0
        self._heard = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._scheme = "https" if tls else "http"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def beat_reply(self, **more: Any) -> Answer:
        """The answer to a beat."""
        reply = {"heartbeat_interval_seconds": self.interval, "telemetry_interval_seconds": 1.0}
        return said(reply | more)

    def answer(self, path: str, *answers: Answer) -> None:
        """Answer the next requests to ``path`` with these, one each."""
        self.answers.setdefault(path, deque()).extend(answers)

    def always(self, path: str, answer: Answer) -> None:
        """Answer every request to ``path`` with this from now on."""
        self.rules[path] = lambda _: answer

    def asked(self, path: str) -> list[Request]:
        """The requests to ``path`` so far."""
        return [request for request in self.requests if request.path == path]

    def wait(self, seen: Callable[[], object], what: str, *, within: float = 40) -> None:
        """Wait until a request makes ``seen`` true."""
        with self._heard:
            assert self._heard.wait_for(lambda: bool(seen()), within), f"not seen within {within} s: {what}"

    def wait_for(self, path: str, times: int = 1) -> Request:
        """Wait for the so-manieth request to ``path``."""
        self.wait(lambda: len(self.asked(path)) >= times, f"{times} x {path}")
        return self.asked(path)[times - 1]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: Request) -> Answer:
        with self._heard:
            waiting = self.answers.get(request.path)
            answer = waiting.popleft() if waiting else None
        if answer is None:
            rule = self.rules.get(request.path)
            answer = rule(request) if rule else problem(404, "not_found")
        with self._heard:
            self.requests.append(request)
            self._heard.notify_all()
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ValueError):  # a client that does not trust us hangs up in the handshake
                    self.close_connection = True

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {key.lower(): value for key, value in self.headers.items()}
                answer = plane._answer(Request(self.command, self.path, headers, body, self.client_address[1]))
                if answer.drop:
                    self.close_connection = True
                    return
                (self.send_response_only if "Date" in answer.headers else self.send_response)(answer.status)
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_HEAD = do_POST = do_PUT = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def http_date(moment: datetime) -> str:
    """As HTTP writes dates."""
    return moment.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
