"""Whom the agent believes: real TLS with certificates made for the test."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from agent import protocol, wire
from agent.certificates import elements, issuer
from agent.client import Client
from agent.config import Link
from agent.trouble import TlsProblem
from tests.agent.scripted import CREDENTIAL, ControlPlane
from tests.agent.secured import CA_NAME, Serve, ask


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
    assert CA_NAME in str(error)
    assert "MODELFORGE_AGENT_CA_CERT_PATH" in str(error)


def test_another_ca_than_the_named_one_is_refused(serve: Serve, tmp_path: Path) -> None:
    other = trustme.CA(organization_name="Somebody else")
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    error = refusal(serve(), ca_file=tmp_path / "other.pem")
    assert error.kind == "unknown_ca"
    assert CA_NAME in str(error)
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


def test_the_issuer_is_read_from_the_certificate_itself(authority: trustme.CA) -> None:
    pem = authority.issue_cert("x.example").cert_chain_pems[0].bytes().decode()
    assert issuer(ssl.PEM_cert_to_DER_cert(pem)) == CA_NAME


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x82\xff\xff", b"\x30\x03\x02\x01", b"\x00" * 50, b"hello world"])
def test_what_is_no_certificate_has_no_issuer(data: bytes) -> None:
    assert issuer(data) == ""


def test_elements_are_split_by_their_lengths() -> None:
    found = elements(b"\x02\x01\x05" + b"\x04\x81\x80" + b"x" * 128)
    assert [(element.tag, len(element.value)) for element in found] == [(2, 1), (4, 128)]
