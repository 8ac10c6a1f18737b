"""Through a proxy: a real CONNECT proxy that writes down what it saw."""

import base64
import socket
import threading
from pathlib import Path

import pytest

from agent.trouble import Unreachable
from tests.agent.scripted import CREDENTIAL
from tests.agent.secured import Serve, ask


class Proxy:
    """A CONNECT proxy that tunnels and keeps the head of each request."""

    def __init__(self, *, status: int = 200) -> None:
        self.heads: list[str] = []
        self._status = status
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening, for whoever waits in accept() too."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heads.append(head.decode())
            if self._status != 200:
                client.sendall(f"HTTP/1.1 {self._status} No\r\nContent-Length: 0\r\n\r\n".encode())
                client.close()
                continue
            host, _, port = head.split(b" ")[1].decode().rpartition(":")
            server = socket.create_connection((host, int(port)))
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    finally:
        source.close()


def test_through_a_proxy_the_tunnel_is_end_to_end(serve: Serve, ca_file: Path) -> None:
    """Field case 30."""
    plane, proxy = serve(), Proxy()
    ask(plane, ca_file=ca_file, proxy=f"http://user:s3cret@{proxy.address}")
    proxy.close()
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{plane.port} ")
    assert f"Basic {base64.b64encode(b'user:s3cret').decode()}" in head
    assert CREDENTIAL not in head
    assert "proxy-authorization" not in plane.requests[0].headers


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_says_no_is_named_without_its_password(serve: Serve, ca_file: Path, status: int) -> None:
    plane, proxy = serve(), Proxy(status=status)
    with pytest.raises(Unreachable) as error:
        ask(plane, ca_file=ca_file, proxy=f"http://user:s3cret@{proxy.address}")
    proxy.close()
    assert error.value.kind == "proxy"
    assert "MODELFORGE_AGENT_PROXY" in str(error.value)
    assert "s3cret" not in str(error.value)
    assert plane.requests == []


def test_a_proxy_that_is_not_there_is_named(serve: Serve, ca_file: Path) -> None:
    proxy = Proxy()
    proxy.close()
    with pytest.raises(Unreachable) as error:
        ask(serve(), ca_file=ca_file, proxy=f"http://user:s3cret@{proxy.address}")
    assert error.value.kind == "proxy"
    assert "s3cret" not in str(error.value)
