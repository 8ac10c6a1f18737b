"""A stand-in for the Hub and its CDN that is fast enough not to be what is measured: processes of its own, sendfile.

``python -m bench.acquire_hub FOLDER PORT [--tls CERT_AND_KEY] [--latency SECONDS] [--rate BYTES_PER_SECOND]``

FOLDER holds one folder per repository, and beside it ``<repository>.json``: its commit and its files. Large files are
answered with a redirect to the CDN, which is the next port; ``--latency`` is added to each answer and each connection,
``--rate`` is a limit of each connection.
"""

import argparse
import json
import mmap
import os
import socket
import ssl
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

PROCESSES = 2
LARGE = 1024 * 1024  # larger files are LFS files
_PIECE = 512 * 1024
_TLS_PIECE = 128 * 1024


@dataclass(frozen=True)
class Shape:
    """What the line is like."""

    latency: float = 0.0
    rate: float = 0.0


class Hub:
    """Answers on two listening sockets, a thread for each connection."""

    def __init__(self, folder: Path, port: int, shape: Shape, context: ssl.SSLContext | None) -> None:
        self._folder, self._port, self._shape, self._context = folder, port, shape, context
        self._repos: dict[str, Any] = {
            path.name.removesuffix(".json"): json.loads(path.read_text()) for path in folder.glob("*.json")
        }

    def serve(self, listener: socket.socket) -> None:
        """Until the process ends."""
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            time.sleep(self._shape.latency)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as asked:
                while (line := asked.readline(8192)) and self._answer(connection, line, asked):
                    pass
        except OSError:
            connection.close()

    def _answer(self, connection: socket.socket, line: bytes, asked: Any) -> bool:
        method, target, _ = line.decode().split(" ")
        headers = {}
        while (header := asked.readline(8192)) not in (b"\r\n", b""):
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        if self._shape.latency:
            time.sleep(self._shape.latency)
        parts = unquote(target.partition("?")[0]).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._tell(connection, parts)
        elif parts[0] == "api":
            connection.sendall(_head("404 Not Found", {"Content-Length": "0"}))
        elif parts[0] == "cdn":
            self._send(connection, method, self._folder.joinpath(*parts[1:]), headers, {})
        else:
            self._resolve(connection, method, parts, headers)
        return True

    def _tell(self, connection: socket.socket, parts: list[str]) -> None:
        name = parts[3]
        repo = self._repos[name]
        if "tree" in parts:
            said: Any = [
                {"type": "file", "path": f["path"], "size": f["size"], "oid": f["git_sha1"]}
                | ({"lfs": {"oid": f["sha256"], "size": f["size"], "pointerSize": 130}} if f["size"] > LARGE else {})
                for f in repo["files"]
            ]
        else:
            files = [
                {"rfilename": f["path"], "size": f["size"], "blobId": f["git_sha1"]}
                | ({"lfs": {"sha256": f["sha256"], "size": f["size"], "pointerSize": 130}} if f["size"] > LARGE else {})
                for f in repo["files"]
            ]
            said = {"id": f"bench/{name}", "sha": repo["commit"], "siblings": files, "tags": [], "downloads": 0}
        body = json.dumps(said).encode()
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )

    def _resolve(self, connection: socket.socket, method: str, parts: list[str], headers: dict[str, str]) -> None:
        name, path = parts[1], "/".join(parts[4:])
        repo = self._repos[name]
        file = repo["names"][path]
        known = {"X-Repo-Commit": repo["commit"]}
        if file["size"] <= LARGE:
            known["ETag"] = f'"{file["git_sha1"]}"'
            self._send(connection, method, self._folder / name / path, headers, known)
            return
        scheme = "http" if self._context is None else "https"
        known |= {
            "X-Linked-Etag": f'"{file["sha256"]}"',
            "X-Linked-Size": str(file["size"]),
            "Location": f"{scheme}://127.0.0.1:{self._port + 1}/cdn/{name}/{path}?Signature=x",
            "Content-Length": "0",
        }
        connection.sendall(_head("302 Found", known))

    def _send(
        self, connection: socket.socket, method: str, path: Path, headers: dict[str, str], more: dict[str, str]
    ) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start, end, status = 0, size, "200 OK"
            if (wanted := headers.get("range", "")).startswith("bytes="):
                low, _, high = wanted[6:].partition("-")
                start, end, status = int(low), int(high) + 1 if high else size, "206 Partial Content"
                more = more | {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
            more = {
                "ETag": f'"{path.name}-{size}"',
                "Accept-Ranges": "bytes",
                "Content-Length": str(end - start),
            } | more
            head = _head(status, more)
            if method == "HEAD":
                connection.sendall(head)
                return
            if self._context is None:
                connection.sendall(head, socket.MSG_MORE)
            else:
                connection.sendall(head)
            self._pour(connection, file, start, end)

    def _pour(self, connection: socket.socket, file: Any, start: int, end: int) -> None:
        began, sent, rate = time.monotonic(), 0, self._shape.rate
        piece = 64 * 1024 if rate else _PIECE if self._context is None else _TLS_PIECE
        view = None
        if self._context is not None and end > start:
            view = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        while start < end:
            count = min(piece, end - start)
            if view is not None:
                connection.sendall(view[start : start + count])
            else:
                count = os.sendfile(connection.fileno(), file.fileno(), start, count)
                if not count:
                    return
            start, sent = start + count, sent + count
            if rate and (early := began + sent / rate - time.monotonic()) > 0:
                time.sleep(early)


def _head(status: str, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def main(argv: list[str]) -> None:
    """Listen on PORT and the next, in some processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--tls")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0)
    asked = parser.parse_args(argv)
    context = None
    if asked.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(asked.tls)
    listeners = [socket.create_server(("127.0.0.1", asked.port + n), backlog=128) for n in (0, 1)]
    for _ in range(PROCESSES - 1):
        if os.fork() == 0:
            break
    hub = Hub(asked.folder, asked.port, Shape(asked.latency, asked.rate), context)
    threading.Thread(target=hub.serve, args=(listeners[1],), daemon=True).start()
    hub.serve(listeners[0])


if __name__ == "__main__":
    main(sys.argv[1:])
