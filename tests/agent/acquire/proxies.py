"""A forward proxy that tunnels and passes on, in clear or with TLS of its own, and keeps the head of each request."""

import socket
import ssl
import threading
from contextlib import suppress
from typing import Any


class Proxy:
    """Listens on 127.0.0.1 until it is closed; ``status`` other than 200: it opens no tunnel."""

    def __init__(self, context: ssl.SSLContext | None = None, *, status: int = 200) -> None:
        self.heads: list[str] = []
        self._context = context
        self._status = status
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening, for whoever waits in accept() too."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with suppress(OSError, ValueError):
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                byte = client.recv(1)
                if not byte:
                    return
                head += byte
            self.heads.append(head.decode())
            method, target, _ = head.decode().split(" ", 2)
            if self._status != 200:
                client.sendall(f"HTTP/1.1 {self._status} No\r\nContent-Length: 0\r\n\r\n".encode())
                client.close()
            elif method == "CONNECT":
                server = _connected(target)
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                self._join(client, server)
            else:  # by the whole address; every further request of the connection goes to the same server
                host = target.split("/")[2]
                server = _connected(host)
                server.sendall(head.replace(f"http://{host}".encode(), b"", 1))
                self._join(client, server)

    def _join(self, client: Any, server: socket.socket) -> None:
        threading.Thread(target=_pump, args=(server, client), daemon=True).start()
        _pump(client, server)


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


def _pump(source: Any, sink: Any) -> None:
    with suppress(OSError, ValueError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
