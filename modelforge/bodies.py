"""A request's body arrives whole or counts as unreadable; the web server itself tells a broken one like a short one."""

from collections.abc import Callable, Iterable
from typing import Any

Environ = dict[str, Any]
Application = Callable[[Environ, Any], Iterable[bytes]]


class WholeBody:
    """The stream of a body whose length was told: what ends before it raises OSError instead of looking complete."""

    def __init__(self, stream: Any, length: int) -> None:
        self._stream = stream
        self._left = length

    def read(self, size: int = -1) -> bytes:
        """So many bytes, all of them where none is said."""
        wanted = self._left if size < 0 else min(size, self._left)
        data: bytes = self._stream.read(wanted)
        if len(data) < wanted:
            raise OSError(f"The body ended {self._left - len(data)} bytes before its Content-Length.")
        self._left -= len(data)
        return data

    def readline(self, size: int = -1) -> bytes:
        """Up to the end of a line."""
        wanted = self._left if size < 0 else min(size, self._left)
        line: bytes = self._stream.readline(wanted)
        if len(line) < wanted and not line.endswith(b"\n"):
            raise OSError(f"The body ended {self._left - len(line)} bytes before its Content-Length.")
        self._left -= len(line)
        return line


def whole(application: Application) -> Application:
    """The application behind streams that fail where a caller goes away in the middle of a body."""

    def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        if length.isascii() and length.isdigit():
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"], int(length))
        return application(environ, start_response)

    return answer
