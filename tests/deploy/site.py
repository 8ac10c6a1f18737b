"""The control plane as its callers reach it: HTTPS to a name that no DNS knows, believing one CA and nobody else."""

import http.client
import json
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


class _Connection(http.client.HTTPSConnection):
    """To loopback, whatever the name says; the certificate must still be the name's."""

    def connect(self) -> None:
        plain = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)  # type: ignore[attr-defined]


@dataclass
class Site:
    """An address with the CA that vouches for it."""

    name: str
    port: int
    ca: Path
    admin_token: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """As people write it."""
        return f"https://{self.name}:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, *, within: float = 20, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request with a body of JSON on a connection of its own."""
        sent = {"Content-Type": "application/json"} | (headers or {})
        return self.send(method, path, None if body is None else json.dumps(body).encode(), within=within, headers=sent)

    def send(
        self, method: str, path: str, body: bytes | None, *, headers: dict[str, str], within: float = 20
    ) -> Answer:
        """One request on a connection of its own; OSError or HTTPException where there is no answer."""
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = _Connection(self.name, self.port, timeout=within, context=context)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def api(self, method: str, path: str, body: Any = None, *, expect: int | None = None) -> Any:
        """A REST call of the operator's; the answer's JSON. Fails the test where the status is not as expected."""
        answer = self.ask(method, f"/api/v1/{path}", body, headers={"X-ModelForge-Admin-Token": self.admin_token})
        wanted = expect or (201 if method == "POST" else 200)
        assert answer.status in {wanted, 200}, f"{method} {path}: {answer.status} {answer.body[:500]!r}"
        return answer.json

    def ready(self) -> dict[str, Any] | None:
        """What /readyz says; None where nobody answers."""
        try:
            return dict(self.ask("GET", "/readyz", within=10).json)
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def events(self, **filters: str) -> list[dict[str, Any]]:
        """The history, newest first, by its filters."""
        query = "&".join(f"{name}={text}" for name, text in {"page_size": "200", **filters}.items())
        return list(self.api("GET", f"audit-events?{query}")["results"])
