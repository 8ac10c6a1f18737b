"""A load over real HTTP: a few keep-alive connections that send prepared requests, one after the other, for a while."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """What a load achieved: answers, seconds, how many answers were not 200, and the first of those."""

    answers: int
    wrong: int
    seconds: float
    complaint: str

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.answers / self.seconds


class _Connection:
    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, request: bytes) -> bytes:
        """Send one request, read the whole answer: nothing where it is a 200, else the answer."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        data = self._socket.recv(65536)
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        lower = head.lower()
        at = lower.find(b"content-length:")
        length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        while len(body) < length:
            body += self._more()
        if b"connection: close" in lower:
            self._socket.close()
            self._socket = None
        return b"" if head.startswith(b"HTTP/1.1 200") else data[:200] + body

    def _more(self) -> bytes:
        assert self._socket is not None
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionError("the server closed the connection in the middle of an answer")
        return more


def run(port: int, requests: list[Iterator[bytes]], seconds: float) -> Done:
    """Let each of ``requests`` have a connection of its own, for ``seconds``."""
    start = time.perf_counter()

    def work(stream: Iterator[bytes]) -> tuple[int, list[bytes]]:
        connection, answers, wrong = _Connection(port), 0, list[bytes]()
        while time.perf_counter() - start < seconds:
            complaint = connection.ask(next(stream))
            answers += 1
            if complaint:
                wrong.append(complaint)
        return answers, wrong

    with ThreadPoolExecutor(len(requests)) as pool:
        counts = list(pool.map(work, requests))
    took = time.perf_counter() - start
    complaints = [complaint for _, wrong in counts for complaint in wrong]
    first = complaints[0].decode(errors="replace") if complaints else ""
    return Done(sum(answers for answers, _ in counts), len(complaints), took, first)
