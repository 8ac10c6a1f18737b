"""What may go wrong between an agent and its control plane, each with a code, a remedy, and whether waiting helps.

Trouble
├── Unreachable      no answer: name, refusal, timeout, broken connection, proxy            wait and try again
│   └── TlsProblem   an answer, but from somebody whom we may not believe                   wait and try again
├── Faltering        a gateway's or server's 5xx, 408 or 429 without a problem document     wait and try again
├── Redirected       a redirect; following it would drop the credential or the body         wait and try again
├── NotModelForge    somebody else's page, or an answer out of shape                        wait and try again
├── NotStored        the answer came and could not be kept: the state folder is full or closed   wait and try again
└── Refused          the control plane's own no, with its stable code                       as ``retryable`` says

A trouble that ``parks`` is one that only a person can mend: the agent stays up, unhealthy, and asks again slowly.
"""

import socket
import ssl
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from agent import wire
from agent.certificates import issuer_at
from agent.config import CA, PROXY, URL, Link
from agent.logs import redact, told
from agent.protocol import Code

_EXPIRED, _NOT_YET_VALID, _WRONG_HOST, _WRONG_ADDRESS = 10, 9, 62, 64
_UNKNOWN_CA = frozenset({2, 18, 19, 20, 21, 27})
_LOOK_TIMEOUT_SECONDS = 5.0
_MAX_TEXT, _MAX_DETAIL, _MAX_LOCATION, _MAX_NAME, _MAX_SPOKEN = 1000, 500, 255, 64, 16


class Trouble(Exception):
    """Something went wrong on the way; ``code`` is stable, ``str()`` is one line for people and holds no secret."""

    code = "trouble"
    parks = False
    retry_after: timedelta | None = None
    request_id = ""

    def __init__(self, text: str) -> None:
        super().__init__(told(text, _MAX_TEXT))


class Unreachable(Trouble):
    """No answer came; ``kind`` is dns, refused, timeout, broken, proxy or tls."""

    code = "unreachable"

    def __init__(self, url: str, kind: str, what: str) -> None:
        super().__init__(f"{url} cannot be reached: {what}.")
        self.kind = kind


class TlsProblem(Unreachable):
    """The other side could not prove who it is; ``kind`` is unknown_ca, expired, not_yet_valid, wrong_host or tls."""

    code = "tls"


class Faltering(Trouble):
    """A gateway or server in trouble of its own; it says nothing about this node."""

    code = "unavailable"

    def __init__(self, url: str, status: int, *, retry_after: timedelta | None) -> None:
        super().__init__(f"{url} answered {status}, from a gateway or before the application; trying again.")
        self.status = status
        self.retry_after = retry_after


class Redirected(Trouble):
    """A redirect, which is never followed: a POST would become a GET and lose its credential."""

    code = "redirected"

    def __init__(self, url: str, path: str, location: str, status: int) -> None:
        self.location = _joined(url + path, location)
        goes_to = told(self.location.partition("?")[0], _MAX_LOCATION)
        if goes_to.rstrip("/").endswith(path):
            hint = f"Set {URL}={goes_to.rstrip('/').removesuffix(path)}"
        else:
            hint = f"Set {URL} to the address that answers without a redirect"
        super().__init__(f"{url}{path} answered {status} and points to {goes_to or 'nowhere'}. {hint}.")


class NotModelForge(Trouble):
    """Something answered, but not this product's API."""

    code = "not_modelforge"

    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"What answers at {url} is no ModelForge control plane: {what}. Check {URL}.")


class NotStored(Trouble):
    """A credential came and could not be written to the state folder; asking again gives a fresh one."""

    code = "state_unwritable"


class Refused(Trouble):
    """The control plane said no, in the protocol's words."""

    def __init__(
        self, problem: wire.Problem, *, status: int, retry_after: timedelta | None = None, request_id: str = ""
    ) -> None:
        self.code = told(problem.code, _MAX_NAME)
        text = told(problem.detail or problem.title or problem.code, _MAX_DETAIL)
        if problem.protocols:
            text += f" (spoken there: {', '.join(map(str, problem.protocols[:_MAX_SPOKEN]))})"
        super().__init__(f"{status} {self.code}: {text}")
        self.status = status
        self.retryable = problem.retryable or status >= 500 or status in (408, 429)
        self.parks = not self.retryable
        self.retry_after = retry_after
        self.request_id = told(problem.request_id or request_id, _MAX_NAME)

    @property
    def of_credential(self) -> bool:
        """Whether it is the credential that is no good, so that a fresh invitation may help."""
        return self.code in (Code.CREDENTIAL_REVOKED, Code.CREDENTIAL_UNKNOWN)


def of_connection(error: BaseException, link: Link) -> Trouble:
    """Name what requests, urllib3, ssl or the socket complain about."""
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause, link)
    for cause in chain:
        if isinstance(cause, (ssl.SSLError, urllib3.exceptions.SSLError)):
            return TlsProblem(link.url, "tls", f"TLS failed ({_said(cause)}). Is it an https:// port?")
    if _any(chain, requests.exceptions.ProxyError, urllib3.exceptions.ProxyError):
        said = _said(chain[-1])
        return Unreachable(link.url, "proxy", f"its proxy failed ({said}). Check {PROXY} (or HTTPS_PROXY and NO_PROXY)")
    host = link.parts.hostname or ""
    if _any(chain, socket.gaierror, urllib3.exceptions.NameResolutionError):
        return Unreachable(link.url, "dns", f"the name {host} is not known here. Check it, or this machine's DNS")
    if _any(chain, ConnectionRefusedError):
        return Unreachable(link.url, "refused", "nothing listens there. Is it up, is the port right?")
    if _any(chain, requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError):
        what = "it was connected, and its answer did not come in time. It, or a proxy before it, is slow or overloaded"
        return Unreachable(link.url, "timeout", what)
    if _any(chain, requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError):
        return Unreachable(link.url, "timeout", "no connection in time. A firewall may drop the packets")
    return Unreachable(link.url, "broken", f"the connection broke ({_said(chain[-1])})")


def _certificate(error: ssl.SSLCertVerificationError, link: Link) -> TlsProblem:
    host, port = link.parts.hostname or "", link.parts.port or 443
    if error.verify_code == _EXPIRED:
        return TlsProblem(link.url, "expired", "its certificate has expired. Renew it, or set this machine's clock")
    if error.verify_code == _NOT_YET_VALID:
        return TlsProblem(link.url, "not_yet_valid", "its certificate is not valid yet. Check this machine's clock")
    if error.verify_code in (_WRONG_HOST, _WRONG_ADDRESS):
        what = f"its certificate is not for {host}. Set {URL} to a name that stands in it, or add {host} to it"
        return TlsProblem(link.url, "wrong_host", what)
    if error.verify_code in _UNKNOWN_CA:
        name = "" if link.proxy else issuer_at(host, port, timeout=_LOOK_TIMEOUT_SECONDS)
        by = f'"{name}"' if name else "a CA"
        whom = f"{link.ca_file} did not sign it" if link.ca_file else "this system does not know that CA"
        what = f"its certificate is issued by {by}, and {whom}. Set {CA} to that CA's public certificate"
        return TlsProblem(link.url, "unknown_ca", what)
    return TlsProblem(link.url, "tls", f"its certificate is refused ({error.verify_message})")


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location) if location else ""
    except ValueError:  # a bracket in the host, say
        return ""


def _any(chain: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in chain)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies behind it, outermost first, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [getattr(current, "reason", None)] if isinstance(getattr(current, "reason", None), Exception) else []
        waiting += [arg for arg in current.args if isinstance(arg, BaseException)]
        waiting += [current.__cause__, current.__context__]


def _said(error: BaseException) -> str:
    """The error's own words, short and without an address's secrets."""
    return redact(str(error) or type(error).__name__)[:200]


def host_of(url: str) -> str:
    """The host and port of an address, without user name and password, for a line that people read."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
