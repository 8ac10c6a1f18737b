"""Signed links to files at the CDN: each is good for a while or for a few requests."""

import itertools
import threading
import time
from dataclasses import dataclass

from tests.hub.repositories import File

NAMES = ("Expires", "Signature", "Key-Pair-Id")


@dataclass
class Link:
    """One link."""

    file: File
    made_at: float
    uses: int = 0
    revoked: bool = False


class Links:
    """All links that were given out."""

    def __init__(self) -> None:
        self.live_seconds: float | None = None
        self.live_uses: int | None = None
        self._made: dict[str, Link] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def sign(self, file: File) -> str:
        """Path and query of a new link; the query is what nobody else may see."""
        with self._lock:
            signature = f"signed-{next(self._numbers):08}-{file.sha256[:24]}"
            self._made[signature] = Link(file, time.monotonic())
        digest = file.sha256
        query = f"Expires=1799999999&Signature={signature}&Key-Pair-Id=K24J24Z295AEI9"
        return f"/repos/{digest[:2]}/{digest[2:4]}/{digest}?{query}"

    def expire(self) -> None:
        """No link given out so far is good any more."""
        with self._lock:
            for link in self._made.values():
                link.revoked = True

    def of(self, signature: str) -> Link | None:
        """The link, whether it is good or not."""
        return self._made.get(signature)

    def use(self, link: Link) -> bool:
        """Whether it is good for this request."""
        with self._lock:
            link.uses += 1
            late = self.live_seconds is not None and time.monotonic() - link.made_at > self.live_seconds
            return not (late or link.revoked or (self.live_uses is not None and link.uses > self.live_uses))
