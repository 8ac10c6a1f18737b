"""A stand-in for the Hugging Face Hub and its CDN, true enough for the real client, with faults as tests tell them.

::

    with Hub() as hub:
        repo = hub.repo("org/model", {"config.json": b"{}", "model.safetensors": weights(3_000_000, seed=1)})
        hub.url                                       # HF_ENDPOINT
        repo.sha                                      # what main means
        repo.commit({...})                            # moves main
        hub.token("hf_secret", accepted=["org/model"])   # a good token, and the gated repositories it may read
        hub.fault("cdn", Fault(cut_at=1000), file="*.safetensors", times=1)
        hub.of("cdn", file="model.safetensors")       # the requests, with headers, range and bytes sent
        hub.sent("model.safetensors")                 # bytes of it that left the Hub or the CDN
        hub.cdn.bytes_per_second = 1_000_000          # of each connection; hub.latency(0.06) of each answer

Hub, CDN and a third host (``elsewhere``, which serves nothing and remembers who came) are three ports of 127.0.0.1:
three origins to every client. Large (LFS) files are redirected to links at the CDN that may expire; small ones are
served by the Hub. ``Hub(trustme.CA(), folder=tmp_path)`` speaks TLS, and its ``ca_file`` is what clients must trust.
``stop`` and ``start`` keep all ports.
"""

import ssl
import threading
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self

import trustme

from tests.hub.answers import Answer, befallen, in_its_place
from tests.hub.desk import Desk
from tests.hub.faults import Fault, Kind, Request, Rule, Script
from tests.hub.links import Links
from tests.hub.origin import Origin
from tests.hub.repositories import LARGE, Files, Gate, Repository


class Hub:
    """Its three origins, its repositories, and every request that came."""

    def __init__(
        self,
        authority: trustme.CA | None = None,
        *,
        folder: Path | None = None,
        prefix: str = "",
        name: str = "127.0.0.1",  # by which clients know it, where something carries them here
    ) -> None:
        self.prefix = prefix  # of a mirror that is not at the root of its host
        self.direct = False  # large files are served by the Hub itself, as mirrors do
        self.ca_file: Path | None = None
        if authority is not None and folder is not None:
            self.ca_file = folder / "hub-ca.pem"
            authority.cert_pem.write_to_path(str(self.ca_file))
        self.requests: list[Request] = []
        self.repositories: dict[str, Repository] = {}
        self.renamed: dict[str, str] = {}  # an old name -> the present one
        self.tokens: dict[str, Collection[str]] = {}
        self.links = Links()
        self._script = Script()
        self._lock = threading.Lock()
        context = _context(authority, name)
        self.hub = Origin(lambda request: self._respond(request, self._desk.at_the_hub), context, name)
        self.cdn = Origin(lambda request: self._respond(request, self._desk.at_the_cdn), context, name)
        self.elsewhere = Origin(lambda request: self._respond(request, self._desk.at_another_host), context, name)
        self._origins = (self.hub, self.cdn, self.elsewhere)
        self._desk = Desk(self)
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What HF_ENDPOINT is set to."""
        return self.hub.url + self.prefix

    def start(self) -> None:
        """Listen, on the same ports as before."""
        for origin in self._origins:
            origin.start()

    def stop(self) -> None:
        """Refuse connections, and end those that are open."""
        for origin in self._origins:
            origin.stop()

    def repo(
        self, repo_id: str, files: Files, *, large: Sequence[str] = LARGE, gated: Gate = "", private: bool = False
    ) -> Repository:
        """A new repository with one commit."""
        made = Repository(repo_id, large=large, gated=gated, private=private)
        made.commit(files)
        self.repositories[repo_id] = made
        return made

    def token(self, text: str, *, accepted: Collection[str] = ()) -> str:
        """A token that is known, and the gated or private repositories that it may read."""
        self.tokens[text] = accepted
        return text

    def fault(
        self,
        kind: Kind | None,
        fault: Fault,
        *,
        file: str = "*",
        path: str = "*",
        method: str = "",
        after: int = 0,
        times: int | None = None,
        when: Callable[[Request], bool] | None = None,
    ) -> Rule:
        """Let this go wrong with the requests meant; the rule counts them. The rule told first counts."""
        return self._script.add(Rule(fault, kind, file, path, method, after, times, when))

    def mend(self) -> None:
        """From now on all is well."""
        self._script.clear()

    def latency(self, seconds: float) -> None:
        """Every answer waits so long."""
        for origin in self._origins:
            origin.latency_seconds = seconds

    def of(self, *kinds: Kind, file: str = "*", method: str = "") -> list[Request]:
        """The requests so far, oldest first."""
        with self._lock:
            return [
                request
                for request in self.requests
                if (not kinds or request.kind in kinds)
                and method in ("", request.method)
                and fnmatchcase(request.file, file)
            ]

    def sent(self, file: str = "*") -> int:
        """Bytes of files that were handed to the network."""
        return sum(r.bytes_sent for r in self.of("resolve", "cdn", file=file) if r.status in (200, 206))

    def told_to(self, origin: Origin) -> list[Request]:
        """The requests that came to one origin."""
        kinds: dict[Origin, tuple[Kind, ...]] = {self.cdn: ("cdn",), self.elsewhere: ("elsewhere",)}
        return self.of(*kinds.get(origin, ("info", "tree", "resolve", "other")))

    def strangers_saw(self, secret: str) -> list[Request]:
        """The requests that carried this secret to the CDN or to another host, or anywhere in an address."""
        return [
            request
            for request in self.of()
            if secret in request.path
            or (request.kind in ("cdn", "elsewhere") and any(secret in text for text in request.headers.values()))
        ]

    def _respond(
        self, request: Request, desk: Callable[[Request], tuple[Answer, Fault]]
    ) -> tuple[Answer | None, Fault]:
        with self._lock:
            self.requests.append(request)
        answer, fault = desk(request)
        return (None if fault.silent or fault.drop else answer), fault

    def consult(self, request: Request, answer: Callable[[Fault], Answer]) -> tuple[Answer, Fault]:
        """The answer, or what a fault makes of it."""
        fault = self._script.of(request)
        return befallen(in_its_place(request, fault) or answer(fault), fault), fault


def _context(authority: trustme.CA | None, name: str) -> ssl.SSLContext | None:
    if authority is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context
