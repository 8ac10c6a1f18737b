"""What may go wrong with one answer of the stand-in Hub, and with which answers."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal

from tests.hub.contents import Content

Kind = Literal["info", "tree", "resolve", "cdn", "elsewhere", "other"]
"""What is asked: the API's two listings, a file at the Hub, its bytes at the CDN, another host, anything else."""


@dataclass
class Request:
    """A request as it came, and what was sent in answer."""

    kind: Kind
    method: str
    path: str  # raw, with its query
    headers: dict[str, str]  # names in lower case
    file: str = ""  # the path in its repository, where it asks for one
    range: tuple[int, int | None] | None = None  # first and last byte asked for
    status: int = 0
    bytes_sent: int = 0  # of the body, handed to the kernel
    whole: bool = False  # the answer ended as it should
    connection: int = 0
    at: float = 0.0  # monotonic seconds
    ended_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """All that is not said here is as it should be."""

    # Instead of the true answer.
    status: int = 0
    error_code: str = ""  # X-Error-Code
    error_message: str = ""  # X-Error-Message
    body: bytes | None = None
    redirect: str = ""  # 302 to there; "{path}" stands for the path that was asked for
    silent: bool = False  # no answer, the connection stays open
    drop: bool = False  # the connection ends without an answer
    # Of the head.
    meanwhile: Callable[[], object] | None = None  # called before the answer
    wait: float = 0.0  # seconds before the answer
    headers: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))  # None takes one away
    ignore_range: bool = False  # 200 and the whole file
    content_range: str = ""  # may hold {start}, {end} and {size}
    chunked: bool = False  # no Content-Length
    # Of the bytes.
    edit: Callable[[Any], Any] | None = None  # the JSON that is told, changed or replaced
    content: Content | None = None  # in place of the file's
    flip: tuple[int, ...] = ()  # offsets in the file
    shift: int = 0  # bytes from so much further on than is said
    size: int | None = None  # the file has so many bytes at the CDN: shorter, or filled up with zeros
    gzip: bool = False
    cut_at: int | None = None  # the connection ends after so many bytes of the body
    stall_at: int | None = None  # nothing comes after so many bytes of the body
    bytes_per_second: float | None = None


@dataclass
class Rule:
    """Which requests a fault befalls."""

    fault: Fault
    kind: Kind | None
    file: str
    path: str
    method: str
    after: int  # spares the first so many
    times: int | None  # then befalls so many
    when: Callable[[Request], bool] | None
    seen: int = 0  # requests meant
    hits: int = 0  # requests befallen

    def befalls(self, request: Request) -> bool:
        """Whether it is this request's turn; counts it."""
        if not self._meant(request):
            return False
        self.seen += 1
        turn = self.seen > self.after and (self.times is None or self.hits < self.times)
        self.hits += turn
        return turn

    def _meant(self, request: Request) -> bool:
        return (
            self.kind in (None, request.kind)
            and self.method in ("", request.method)
            and fnmatchcase(request.file, self.file)
            and fnmatchcase(request.path, self.path)
            and (self.when is None or self.when(request))
        )


FINE = Fault()


class Script:
    """The faults to come, first told first."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(self, rule: Rule) -> Rule:
        """From now on."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """From now on all is well."""
        with self._lock:
            self._rules.clear()

    def of(self, request: Request) -> Fault:
        """What goes wrong with this request."""
        with self._lock:
            return next((rule.fault for rule in self._rules if rule.befalls(request)), FINE)
