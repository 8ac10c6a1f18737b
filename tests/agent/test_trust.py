"""Whom the agent believes: real TLS with certificates made for the test, and a proxy that writes down what it saw."""

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from agent import protocol, wire
from agent.certificates import elements, issuer
from agent.client import Client
from agent.config import Link
from agent.trouble import TlsProblem, Unreachable
from tests.agent.scripted import CREDENTIAL, ControlPlane

NAME = "The Office's Own CA"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A private CA."""
    return trustme.CA(organization_name=NAME, organization_unit_name="tests")


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    """Its public certificate."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return tmp_path / "ca.pem"


Serve = Callable[..., ControlPlane]


@pytest.fixture
def serve(authority: trustme.CA) -> Iterator[Serve]:
    """Starts control planes that show a certificate of the private CA."""
    made: list[ControlPlane] = []

    def start(*names: str, not_after: datetime | None = None) -> ControlPlane:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*(names or ("127.0.0.1",)), not_after=not_after).configure_cert(context)
        made.append(ControlPlane(context))
        return made[-1]

    yield start
    for plane in made:
        plane.close()


def ask(plane: ControlPlane, *, ca_file: Path | None = None, proxy: str | None = None, verify: bool = True) -> None:
    link = Link(url=plane.url, ca_file=ca_file, proxy=proxy, tls_verify=verify, timeout=timedelta(seconds=5))
    client = Client(link)
    try:
        client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    finally:
        client.close()


def refusal(plane: ControlPlane, *, ca_file: Path | None = None) -> TlsProblem:
    with pytest.raises(TlsProblem) as error:
        ask(plane, ca_file=ca_file)
    assert plane.requests == []  # the credential was not shown
    assert "TLS_VERIFY" not in str(error.value)  # never suggest to switch it off
    return error.value


def test_a_private_ca_is_believed_where_the_operator_named_it(serve: Serve, ca_file: Path) -> None:
    """Field case 28."""
    plane = serve()
    ask(plane, ca_file=ca_file)
    assert len(plane.requests) == 1


def test_an_unknown_ca_is_named_with_the_variable_to_set(serve: Serve) -> None:
    """Field case 28."""
    error = refusal(serve())
    assert error.kind == "unknown_ca"
    assert NAME in str(error)
    assert "MODELFORGE_AGENT_CA_CERT_PATH" in str(error)


def test_another_ca_than_the_named_one_is_refused(serve: Serve, tmp_path: Path) -> None:
    other = trustme.CA(organization_name="Somebody else")
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    error = refusal(serve(), ca_file=tmp_path / "other.pem")
    assert error.kind == "unknown_ca"
    assert NAME in str(error)
    assert "other.pem" in str(error)


def test_an_expired_certificate_is_told_as_such(serve: Serve, ca_file: Path) -> None:
    error = refusal(serve(not_after=datetime.now(UTC) - timedelta(days=1)), ca_file=ca_file)
    assert error.kind == "expired"


def test_a_certificate_for_another_name_is_told_as_such(serve: Serve, ca_file: Path) -> None:
    error = refusal(serve("modelforge.example"), ca_file=ca_file)
    assert error.kind == "wrong_host"
    assert "127.0.0.1" in str(error)


def test_the_systems_store_is_where_ssl_cert_file_says(
    serve: Serve, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    plane = serve()
    ask(plane)
    assert len(plane.requests) == 1


def test_what_others_tell_requests_to_believe_does_not_count(
    serve: Serve, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca_file))
    monkeypatch.setenv("CURL_CA_BUNDLE", str(ca_file))
    assert refusal(serve()).kind == "unknown_ca"


def test_only_the_named_ca_is_believed(
    serve: Serve, ca_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = trustme.CA()
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))  # the system would believe it
    assert refusal(serve(), ca_file=tmp_path / "other.pem").kind == "unknown_ca"


def test_an_intermediate_may_be_what_is_trusted(authority: trustme.CA, tmp_path: Path) -> None:
    middle = authority.create_child_ca()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    middle.issue_cert("127.0.0.1").configure_cert(context)
    middle.cert_pem.write_to_path(str(tmp_path / "middle.pem"))
    plane = ControlPlane(context)
    try:
        ask(plane, ca_file=tmp_path / "middle.pem")
        assert len(plane.requests) == 1
    finally:
        plane.close()


def test_switched_off_nobody_is_checked(serve: Serve) -> None:
    plane = serve("modelforge.example")
    ask(plane, verify=False)
    assert len(plane.requests) == 1


def test_https_towards_a_plain_port_says_so(plane: ControlPlane) -> None:
    client = Client(Link(url=plane.url.replace("http://", "https://")))
    with pytest.raises(TlsProblem, match="https:// port"):
        client.call("POST", protocol.HEARTBEAT, bearer=CREDENTIAL, answer=wire.BeatReply)
    client.close()


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


def test_the_issuer_is_read_from_the_certificate_itself(authority: trustme.CA) -> None:
    pem = authority.issue_cert("x.example").cert_chain_pems[0].bytes().decode()
    assert issuer(ssl.PEM_cert_to_DER_cert(pem)) == NAME


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x82\xff\xff", b"\x30\x03\x02\x01", b"\x00" * 50, b"hello world"])
def test_what_is_no_certificate_has_no_issuer(data: bytes) -> None:
    assert issuer(data) == ""


def test_elements_are_split_by_their_lengths() -> None:
    found = elements(b"\x02\x01\x05" + b"\x04\x81\x80" + b"x" * 128)
    assert [(element.tag, len(element.value)) for element in found] == [(2, 1), (4, 128)]
