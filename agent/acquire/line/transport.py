"""One connection to one origin: opened when it is asked something, kept open, and cut off by whoever must."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import quote, urlsplit

from agent import __version__
from agent.acquire.hub import refusals
from agent.acquire.hub.reach import Reach
from agent.acquire.hub.source import Origin, Source
from agent.acquire.line.answer import Answer
from agent.acquire.line.dial import Astray, Dialled, ProxyRefused, dial
from agent.acquire.line.faults import Fault
from agent.acquire.line.limits import Limits
from agent.acquire.line.watchdog import Watchdog
from agent.acquire.terms import Failed

_SAFE = "/?&=:@!$'()*+,;%~-._[]"


class Way:
    """What all connections of a fetch share."""

    def __init__(self, source: Source, limits: Limits, watchdog: Watchdog) -> None:
        self.source = source
        self.limits = limits
        self.watchdog = watchdog
        self.reach: Reach | None = None  # of the Hub itself, once it was spoken to
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def trust(self) -> ssl.SSLContext:
        """Whom to believe; read from disk once."""
        with self._lock:
            if self._context is None:
                self._context = self.source.trust()
            return self._context


class Line:
    """A connection, opened when it is asked something and kept open; of one thread, but any may cut it."""

    def __init__(self, origin: Origin, way: Way) -> None:
        self._origin = origin
        self.since: float | None = None
        self._way = way
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # to shut down
        self._dialled: Dialled | None = None
        self._http: http.client.HTTPConnection | None = None
        self._why: Exception | None = None
        self._closed = False
        way.watchdog.watch(self)

    @property
    def origin(self) -> Origin:
        """Who answers here."""
        return self._origin

    @property
    def host(self) -> str:
        """For messages."""
        return self.origin[1]

    @property
    def dead(self) -> bool:
        """Cut or closed: another one must take its place."""
        return self._closed or self._why is not None

    def ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Send a GET and read the head of its answer; a kept connection that had ended meanwhile is opened again."""
        kept = self._http is not None and self._http.sock is not None
        try:
            return self._ask(url, headers)
        except (ConnectionError, ssl.SSLEOFError) as error:
            self._hang_up()
            if not kept or self._why is not None:
                raise self.fault(error) from None
        except (OSError, http.client.HTTPException, ValueError, Astray) as error:
            raise self.fault(error) from None
        try:
            return self._ask(url, headers)
        except (OSError, http.client.HTTPException, ValueError, Astray) as error:
            raise self.fault(error) from None

    def cut(self, why: Exception) -> None:
        """End whatever the connection waits for; its thread gets ``why``."""
        with self._lock:
            if self._why is None:
                self._why = why
            if self._socket is not None:
                with suppress(OSError):
                    # Not the TLS socket's own: that one would go on reading what it cannot decrypt any more.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """For good."""
        self._closed = True
        self._hang_up()
        self._way.watchdog.forget(self)

    def watched(self, work: Callable[[], None]) -> None:
        """Do something that waits for the other side; raises what went wrong with the connection, or cut it off."""
        self.since = time.monotonic()
        try:
            work()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self.fault(error) from None
        finally:
            self.since = None
        if self._why is not None:
            raise self._why

    def fault(self, error: Exception) -> Exception:
        """What an error means; never in the words of a library, which may quote an address with its signature."""
        if self._why is not None:
            return self._why
        if isinstance(error, ssl.SSLCertVerificationError):
            said = f"The certificate of {self.host} is not trusted ({error.verify_message})."
            hint = f"Set {refusals.CA} to the public certificate of its CA."
            return Failed("source_unavailable", f"{said} {hint}")
        if isinstance(error, Astray):
            said = f"The Hub redirects to {self.host}, whose address is of a private network or of this machine"
            return Failed("source_unavailable", f"{said}; it is not asked. Check {refusals.ENDPOINT}.")
        return Fault("source_unavailable", f"{self.host}: {_words(error)}.")

    def _ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        self.since = time.monotonic()
        try:
            if self._http is None or self._http.sock is None or self._dialled is None:
                self._http, self._dialled = self._open(url)
            connection, proxy = self._http, self._dialled.proxy
            parts = urlsplit(url)
            asked = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            target = quote(asked.encode("latin-1"), safe=_SAFE)  # a header's bytes, as they were
            host = parts.netloc.rpartition("@")[2]
            connection.putrequest(
                "GET", f"http://{host}{target}" if proxy else target, skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("Host", host)
            connection.putheader("User-Agent", f"modelforge-agent/{__version__}")
            connection.putheader("Accept", "*/*")
            connection.putheader("Accept-Encoding", "identity")
            if proxy and proxy.authorization:
                connection.putheader("Proxy-Authorization", proxy.authorization)
            for name, text in headers.items():
                connection.putheader(name, text)
            connection.endheaders()
            return Answer(self, connection.getresponse(), self._way.limits, connection.sock)
        finally:
            self.since = None

    def _open(self, url: str) -> tuple[http.client.HTTPConnection, Dialled]:
        way = self._way
        at_the_hub = self.origin == way.source.origin
        dialled = dial(
            self.origin,
            proxy=way.source.proxy_for(url),
            trust=way.trust,
            within=way.limits.connect,
            most=None if at_the_hub else way.reach,
            hold=self._hold,
        )
        if at_the_hub:
            way.reach = dialled.reach
        connection = http.client.HTTPConnection(*self.origin[1:])
        connection.sock = dialled.stream
        return connection, dialled

    def _hold(self, made: socket.socket) -> None:
        with self._lock:
            self._socket = made
            if self._why is not None:
                raise ConnectionAbortedError

    def _hang_up(self) -> None:
        with self._lock:
            self._socket = None
            connection, self._http, self._dialled = self._http, None, None
            if connection is not None:
                connection.close()


def _words(error: Exception) -> str:
    if isinstance(error, ProxyRefused):
        return str(error)
    if isinstance(error, socket.gaierror):
        return f"the name is not known here ({error.strerror})"
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason told'})"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection ended without an answer"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended early"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"the answer is out of shape ({type(error).__name__})"
