"""A request's body arrives whole or counts as unreadable, and those who send slowly never hold all threads."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from agent.protocol import API, ENROLL

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]

AT_ONCE = 4
"""So many bodies a process waits for at once, agents' aside: half of its threads, the rest is for beats and pages.

How long one waits is the proxy's to bound: granian has no limit, and a thread that gave up a read would leave the body
locked, with the whole process behind it.
"""

PATIENCE = timedelta(seconds=0.25)
"""So long the next one waits for a place: bodies that are here already free theirs within milliseconds."""


class Busy(OSError):
    """Too many bodies are waited for."""


class Slots:
    """Places for requests that wait for their bodies; whoever finds none soon is told."""

    def __init__(self, at_once: int = AT_ONCE, patience: timedelta = PATIENCE) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._patience = patience

    def wait(self, read: Callable[[], bytes]) -> bytes:
        """What is read in a place of its own."""
        if not self._free.acquire(timeout=self._patience.total_seconds()):
            raise Busy("Too many bodies arrive slowly just now.")
        try:
            return read()
        finally:
            self._free.release()


class WholeBody:
    """The stream of a body whose length was told: what ends before it raises OSError instead of looking complete.

    ``fault`` keeps what was raised: Django's CSRF check swallows it, and goes on as though the form had no token.
    """

    def __init__(self, stream: Any, length: int, slots: Slots | None = None) -> None:
        self.fault: OSError | None = None
        self._stream = stream
        self._left = length
        self._slots = slots

    def read(self, size: int = -1) -> bytes:
        """So many bytes, all of them where none is said."""
        wanted = self._left if size < 0 else min(size, self._left)
        with self._noting():
            data = self._read(lambda: self._stream.read(wanted))
            if len(data) < wanted:
                raise OSError(f"The body ended {self._left - len(data)} bytes before its Content-Length.")
        self._left -= len(data)
        return data

    def readline(self, size: int = -1) -> bytes:
        """Up to the end of a line."""
        wanted = self._left if size < 0 else min(size, self._left)
        with self._noting():
            line = self._read(lambda: self._stream.readline(wanted))
            if len(line) < wanted and not line.endswith(b"\n"):
                raise OSError(f"The body ended {self._left - len(line)} bytes before its Content-Length.")
        self._left -= len(line)
        return line

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            self.fault = fault
            raise

    def _read(self, read: Callable[[], bytes]) -> bytes:
        return self._slots.wait(read) if self._slots and self._left else read()


def fault_of(environ: Mapping[str, Any]) -> OSError | None:
    """Why the body of this request could not be read; nothing where it was, or nobody tried."""
    stream = environ.get("wsgi.input")
    return stream.fault if isinstance(stream, WholeBody) else None


def whole(application: Application, slots: Slots | None = None) -> Application:
    """The application behind streams that fail where a caller goes away in the middle of a body.

    Agents' bodies take no place: their views read none before the credential is proven, but an enrollment's.
    """
    slots = slots or Slots()

    def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        length, path = environ.get("CONTENT_LENGTH") or "0", environ.get("PATH_INFO", "")
        if length.isascii() and length.isdigit():
            proven = path.startswith(f"{API}/agent/") and path != ENROLL
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"], int(length), None if proven else slots)
        return application(environ, start_response)

    return answer
