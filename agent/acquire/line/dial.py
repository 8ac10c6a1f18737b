"""Opens a connection: straight or through a proxy, with TLS where it belongs, to no address that is off limits."""

import base64
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, cast
from urllib.parse import unquote, urlsplit

from urllib3.util.ssltransport import SSLTransport

from agent.acquire.hub import reach
from agent.acquire.hub.reach import Reach
from agent.acquire.hub.source import Origin

_MAX_HEAD_BYTES = 16 * 1024


class Astray(Exception):
    """A name leads only to addresses that may not be asked."""


class ProxyRefused(OSError):
    """The proxy opens no tunnel."""


class Stream(Protocol):
    """What a socket and TLS inside TLS have in common."""

    def sendall(self, data: bytes) -> None:
        """Send all of it."""

    def recv_into(self, buffer: memoryview) -> int:
        """Some bytes; 0 at the end."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, taken from its address."""

    host: str
    port: int
    encrypted: bool
    authorization: str  # "" where it wants none

    @classmethod
    def at(cls, url: str) -> "Proxy":
        """The proxy of that address."""
        parts = urlsplit(url)
        login = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            login = f"Basic {base64.b64encode(pair.encode()).decode()}"
        encrypted = parts.scheme == "https"
        return cls(parts.hostname or "", parts.port or (443 if encrypted else 80), encrypted, login)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """An open connection."""

    stream: Stream
    reach: Reach  # of whom we speak to, as far as we can tell
    proxy: Proxy | None  # that must be asked by whole addresses; None: none, or a tunnel


def dial(
    origin: Origin,
    *,
    proxy: str | None,
    trust: Callable[[], ssl.SSLContext],
    within: timedelta,
    most: Reach | None,
    hold: Callable[[socket.socket], None],
) -> Dialled:
    """Connect; ``hold`` is given each socket at once, so that another thread can shut it down."""
    scheme, host, port = origin
    if proxy is None:
        straight, found = _connect(host, port, within, most, hold)
        if scheme == "https":
            straight = _secured(straight, host, trust(), hold)
        straight.settimeout(None)  # the watchdog ends what takes too long
        return Dialled(stream=straight, reach=found, proxy=None)
    found = reach.named(host)
    if most is not None and found > most:
        raise Astray
    through = Proxy.at(proxy)
    plain, _ = _connect(through.host, through.port, within, None, hold)
    if through.encrypted:
        plain = _secured(plain, through.host, trust(), hold)
    if scheme == "http":
        plain.settimeout(None)
        return Dialled(stream=plain, reach=found, proxy=through)
    _tunnel(plain, host, port, through)
    if through.encrypted:
        inner = cast(Stream, SSLTransport(plain, trust(), server_hostname=host))
        plain.settimeout(None)
        return Dialled(stream=inner, reach=found, proxy=None)
    plain = _secured(plain, host, trust(), hold)
    plain.settimeout(None)
    return Dialled(stream=plain, reach=found, proxy=None)


def _connect(
    host: str, port: int, within: timedelta, most: Reach | None, hold: Callable[[socket.socket], None]
) -> tuple[socket.socket, Reach]:
    """Connect to the very address that was looked at: a name may mean another one a moment later."""
    trouble: Exception = Astray()
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        found = reach.of(str(address[0]))
        if most is not None and found > most:
            continue
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(within.total_seconds())
            hold(made)
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            trouble = error
            continue
        return made, found
    raise trouble


def _secured(
    plain: socket.socket, host: str, context: ssl.SSLContext, hold: Callable[[socket.socket], None]
) -> ssl.SSLSocket:
    secured = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    hold(secured)
    try:
        secured.do_handshake()
    except (OSError, ValueError):
        secured.close()
        raise
    return secured


def _tunnel(proxied: socket.socket, host: str, port: int, proxy: Proxy) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    asked = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        asked.append(f"Proxy-Authorization: {proxy.authorization}")
    proxied.sendall("\r\n".join([*asked, "", ""]).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the tunnel
        byte = proxied.recv(1)
        if not byte or len(head) > _MAX_HEAD_BYTES:
            raise ProxyRefused("the proxy ended the connection")
        head += byte
    _, _, rest = head.partition(b" ")
    if rest[:1] != b"2":
        status = rest[:3].decode("ascii", "replace")
        hint = ", and wants a user name and password" if status == "407" else ""
        raise ProxyRefused(f"the proxy answered {status if status.isdigit() else 'something odd'}{hint}")
