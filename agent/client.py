"""The one way to the control plane: bounded requests over a connection of their own, and errors that say what to do."""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from typing import Any, TypeVar

import msgspec
import requests
import urllib3
from requests.adapters import HTTPAdapter

from agent import __version__, protocol, trouble, wire
from agent.backoff import parse_date, parse_retry_after
from agent.config import Link
from agent.trouble import NotModelForge, Redirected, Refused, Unreachable
from agent.trust import trust

M = TypeVar("M")

MAX_REPLY_BYTES = 1024 * 1024
CONNECT_TIMEOUT = timedelta(seconds=10)
_CHUNK_BYTES = 64 * 1024
_SHORTEST_TIMEOUT = timedelta(seconds=0.1)


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_json(self) -> bool:
        """Whether the answer says that it is JSON, a problem included."""
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or kind.endswith("+json")

    @property
    def request_id(self) -> str:
        """The control plane's name for this request, to look up in its log."""
        return self.headers.get(protocol.REQUEST_ID_HEADER, "")[:64]

    @property
    def date(self) -> datetime | None:
        """The control plane's clock, to the second."""
        return parse_date(self.headers.get("Date", ""))


class Client:
    """Speaks the agent's protocol. Not shared between threads: each loop has its own, and so its own connection.

    ``context`` is what ``trust(link)`` gives; clients that share one save the memory of the system's list of CAs.
    """

    def __init__(self, link: Link, context: ssl.SSLContext | None = None) -> None:
        self._link = link
        self.skew: timedelta | None = None  # this machine's clock minus the control plane's, as of the last answer
        session = _Session()
        # Never ~/.netrc (it would replace the credential) nor REQUESTS_CA_BUNDLE; proxies are the configuration's.
        session.trust_env = False
        session.headers.clear()
        session.headers.update(
            {
                "User-Agent": f"modelforge-agent/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                protocol.VERSION_HEADER: str(protocol.VERSION),
            }
        )
        if link.proxy:
            session.proxies = {"http": link.proxy, "https": link.proxy}
        if link.encrypted:
            session.mount("https://", _Adapter(context or trust(link)))
        if link.encrypted and not link.tls_verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # said once, at start, by the agent
        self._session = session

    def call(
        self,
        method: str,
        path: str,
        *,
        bearer: str | None,
        answer: type[M],
        body: msgspec.Struct | None = None,
        within: timedelta | None = None,
    ) -> M:
        """Send one message and decode its answer; raises a ``trouble.Trouble`` for everything that may go wrong.

        ``within`` shortens the configured timeout, never to nothing.
        """
        timeout = None if within is None else max(_SHORTEST_TIMEOUT, min(within, self._link.timeout))
        reply = self._send(method, path, bearer=bearer, body=body, timeout=timeout)
        if not reply.is_json:
            raise NotModelForge(self._link.url, f"it answered {reply.status} with something that is not JSON")
        with self._fence(path):
            return msgspec.json.decode(reply.body, type=answer)

    def tell(self, path: str, *, bearer: str, body: msgspec.Struct, timeout: timedelta) -> None:
        """Send one message whose answer does not matter."""
        self._send("POST", path, bearer=bearer, body=body, timeout=timeout)

    def _send(
        self,
        method: str,
        path: str,
        *,
        bearer: str | None,
        body: msgspec.Struct | None,
        timeout: timedelta | None = None,
    ) -> Reply:
        headers = {"Content-Type": "application/json"}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        data = wire.encode(body) if body is not None else b"{}"
        reply = self.exchange(method, path, headers=headers, data=data, timeout=timeout)
        if not 200 <= reply.status < 300:
            with self._fence(path):
                raise self._refusal(reply)
        return reply

    def exchange(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        timeout: timedelta | None = None,
    ) -> Reply:
        """One request and its whole answer, whatever its status; redirects and connection troubles are raised."""
        with self._fence(path):
            return self._exchange(method, path, headers or {}, data, (timeout or self._link.timeout).total_seconds())

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], data: bytes | None, limit: float) -> Reply:
        give_up_at = time.monotonic() + limit
        try:
            with self._session.request(
                method,
                self._link.url + path,
                data=data,
                headers=dict(headers),
                timeout=(min(limit, CONNECT_TIMEOUT.total_seconds()), limit),
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._read(response, give_up_at)
        except (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            raise trouble.of_connection(error, self._link) from error
        reply = Reply(response.status_code, response.headers, body)
        if reply.date is not None:
            self.skew = datetime.now(UTC) - reply.date
        if 300 <= reply.status < 400:
            raise Redirected(self._link.url, path, reply.headers.get("Location", ""), reply.status)
        return reply

    @contextmanager
    def _fence(self, path: str) -> Iterator[None]:
        """Nothing that an answer holds may do more to us than to be refused, whichever parser trips over it."""
        try:
            yield
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:  # UnicodeError: a ValueError
            raise NotModelForge(self._link.url, f"its answer to {path} is out of shape ({error})") from None

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _read(self, response: requests.Response, give_up_at: float) -> bytes:
        """The body, bounded in size and in time: a server that drips bytes for ever must not hold the beat."""
        body = bytearray()
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                raise NotModelForge(self._link.url, f"its answer is longer than {MAX_REPLY_BYTES} bytes")
            if time.monotonic() > give_up_at:
                raise Unreachable(self._link.url, "timeout", "its answer did not end in time")
        return bytes(body)

    def _refusal(self, reply: Reply) -> trouble.Trouble:
        """What an answer of 400 or more means: a refusal in the protocol's words, or somebody else's page."""
        wait = parse_retry_after(reply.headers.get("Retry-After"), now=reply.date or datetime.now(UTC))
        if reply.is_json:
            try:
                problem = msgspec.json.decode(reply.body, type=wire.Problem)
            except (msgspec.DecodeError, ValueError, RecursionError):
                pass
            else:
                return Refused(problem, status=reply.status, retry_after=wait, request_id=reply.request_id)
        if reply.status == 407:
            return Unreachable(self._link.url, "proxy", "the proxy wants a user name and password")
        if reply.status >= 500 or reply.status in (408, 429):
            return trouble.Faltering(self._link.url, reply.status, retry_after=wait)
        return NotModelForge(self._link.url, f"it answered {reply.status} without a problem document")


class _Session(requests.Session):
    """requests without redirects: it would otherwise read the whole body of one, however long, to prepare the next."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere."""


class _Adapter(HTTPAdapter):
    """requests with our own trust: it would otherwise add certifi's list to the operator's one CA."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, True, cert)
        needed = "CERT_NONE" if self._context.verify_mode == ssl.CERT_NONE else "CERT_REQUIRED"
        return host, {"ssl_context": self._context, "cert_reqs": needed}

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Nothing to add: the context decides."""
