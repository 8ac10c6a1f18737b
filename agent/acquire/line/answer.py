"""An answer: its head, and its body straight from the socket into the caller's memory.

The standard library's HTTP client reads the head. A body of a known length is read from the socket itself, as many
bytes as lie there: nothing is copied twice, and a watchdog sees each byte move.
"""

import http.client
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from agent.acquire.hub.source import Origin
from agent.acquire.line.dial import Stream
from agent.acquire.line.faults import Fault
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Failed

_HEAD_BYTES = 64 * 1024  # more than the library's buffer: one such read empties it
_DRAIN_BYTES = 64 * 1024  # of an unwanted body, to keep the connection; a longer one is cut off
_DRAIN_WITHIN = timedelta(seconds=1)


class Asked(Protocol):
    """The connection that the answer came on."""

    since: float | None  # when a byte last came, while it is waited for

    @property
    def origin(self) -> Origin:
        """Who answers."""

    @property
    def host(self) -> str:
        """For messages."""

    def watched(self, work: Callable[[], None]) -> None:
        """Do something that waits for the other side; raises what went wrong with the connection, or cut it off."""

    def close(self) -> None:
        """For good."""


class Answer:
    """The head of an answer, and its body as it comes."""

    def __init__(self, line: Asked, response: http.client.HTTPResponse, limits: Limits, stream: Stream | None) -> None:
        self.line = line
        self.status = response.status
        self.headers = response.headers
        self.length = response.length  # of the body; None: not told
        self._response = response
        self._left = response.length
        self._stream = stream if response.length is not None else None  # None: only the library can read this body
        self._early: bytes | None = None  # of the body, read with the head
        self._limits = limits
        self._got = 0
        self._bytes, self._seconds = 0, 0.0
        self._fault: Exception | None = None

    def fill(self, view: memoryview, within: timedelta) -> int:
        """Bytes of the body until ``view`` is full or the time is up, at least one; 0 at the end."""
        if self._fault is not None:
            raise self._fault
        self._got = 0
        began = time.monotonic()
        try:
            self.line.watched(lambda: self._pour(view, began + within.total_seconds()))
        except (Fault, Failed) as fault:
            if self._got == 0:
                raise
            self._fault = fault  # what came before it counts
        self._weigh(self._got, time.monotonic() - began)
        return self._got

    def finish(self) -> None:
        """Done with it: a body that was read whole leaves the connection open, any other ends it."""
        if self._left == 0 or self._response.isclosed():
            self._response.close()
        else:
            self.line.close()

    def drain(self) -> None:
        """Read a short body that nobody wants, if it comes soon."""
        spare = memoryview(bytearray(_DRAIN_BYTES))
        until = time.monotonic() + _DRAIN_WITHIN.total_seconds()
        if self._left is None or self._left <= len(spare):
            with suppress(Fault, Failed):
                while self.fill(spare, _DRAIN_WITHIN) and time.monotonic() < until:
                    pass
        self.finish()

    def _pour(self, view: memoryview, until: float) -> None:
        """Over TLS this turns for every 16 KiB, so that it is kept short."""
        line, want = self.line, len(view)
        if self._left is not None and self._left < want:
            want = self._left
        if self._early is None:
            self._early = self._response.read1(_HEAD_BYTES) if want else b""
        if self._early and want:
            self._got = min(want, len(self._early))
            view[: self._got], self._early = self._early[: self._got], self._early[self._got :]
        receive = self._through_the_library if self._stream is None else self._stream.recv_into
        while self._got < want:
            count = receive(view[self._got : want])
            now = time.monotonic()
            line.since = now
            self._got += count
            if count == 0 or now > until:
                break
        if self._left is not None:
            self._left -= self._got

    def _through_the_library(self, view: memoryview) -> int:
        data = self._response.read1(len(view))
        view[: len(data)] = data
        return len(data)

    def _weigh(self, count: int, seconds: float) -> None:
        """Only time spent waiting counts, so that our own bandwidth limit is nobody's fault."""
        self._bytes += count
        self._seconds += seconds
        if self._seconds >= self._limits.drip.total_seconds():
            if self._bytes < self._limits.slowest_bytes_per_second * self._seconds:
                said = f"{self.line.host} sends less than {self._limits.slowest_bytes_per_second:.0f} bytes per second."
                raise Fault("stalled", said)
            self._bytes, self._seconds = 0, 0.0
