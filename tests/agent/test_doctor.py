"""The doctor: finds where the way breaks, and says what to do there."""

import json
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from agent import doctor, health, protocol
from agent.finding import Finding
from agent.health import Report
from tests.agent.processes import command, environment
from tests.agent.scripted import CREDENTIAL, TOKEN, ControlPlane, page, problem

NODE = "6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11"


@pytest.fixture
def ready(tmp_path: Path, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node in good order, as the environment describes it; the folder of its state."""
    plane.always(protocol.HEARTBEAT, problem(401, "unauthenticated"))
    for name in ("state", "hf-cache", "artifacts", "quarantine"):
        (tmp_path / name).mkdir()
    (tmp_path / "state/node-id").write_text(NODE)
    (tmp_path / "state/node-credential").write_text(CREDENTIAL)
    for name, value in environment(tmp_path, plane.url).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "state"


def find(subject: str) -> Finding:
    """The one finding about a subject."""
    (found,) = (finding for finding in doctor.examine() if finding.subject == subject)
    return found


def failures() -> list[str]:
    return [finding.subject for finding in doctor.examine() if finding.level == "FAIL"]


def test_a_node_in_good_order_has_nothing_to_mend(ready: Path) -> None:
    assert failures() == []
    for subject in ("DNS", "TCP", "control plane", "clock", "protocol", "credential"):
        assert find(subject).level == "ok", subject


def test_the_doctor_never_beats_for_the_agent(ready: Path, plane: ControlPlane) -> None:
    list(doctor.examine())
    assert all(request.bearer == "" for request in plane.requests)


def test_a_faulty_configuration_is_told_first(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_AGENT_CONTROL_PLANE_URL", "http://modelforge.example")
    found = find("configuration")
    assert found.level == "FAIL"
    assert found.exit_code == 78


@pytest.mark.parametrize(
    ("url", "subject"),
    [("https://modelforge.invalid", "DNS"), ("http://127.0.0.1:{port}", "TCP"), ("https://127.0.0.1:{plane}", "TLS")],
)
def test_where_the_way_breaks_is_where_it_fails(
    ready: Path, plane: ControlPlane, url: str, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = url.format(port=unused.getsockname()[1], plane=plane.port)
        monkeypatch.setenv("MODELFORGE_AGENT_CONTROL_PLANE_URL", url)
        found = find(subject)
    assert found.level == "FAIL"
    assert found.exit_code == 69


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (problem(426, "protocol_unsupported", protocols=[2]), "FAIL", "speaks 2, this agent 1"),
        (page(404), "FAIL", "not ModelForge's"),
        (problem(503, "unavailable"), "warn", "503"),
    ],
)
def test_another_protocol_or_product_is_told(
    ready: Path, plane: ControlPlane, answer: object, level: str, words: str
) -> None:
    plane.rules[protocol.HEARTBEAT] = lambda _: answer  # type: ignore[return-value, assignment]
    found = find("protocol")
    assert found.level == level
    assert words in found.text


def test_a_redirect_is_told_with_its_hint(ready: Path, plane: ControlPlane) -> None:
    plane.always("/healthz", page(301, Location="https://modelforge.example/healthz"))
    assert "MODELFORGE_AGENT_CONTROL_PLANE_URL=https://modelforge.example" in find("control plane").text


def test_a_missing_credential_and_token_is_told(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ready / "node-credential").unlink()
    assert find("credential").exit_code == 78
    monkeypatch.setenv("MODELFORGE_AGENT_ENROLLMENT_TOKEN", TOKEN)
    assert find("credential").level == "ok"


@pytest.mark.parametrize(
    ("pid", "level", "code"), [(os.getpid(), "FAIL", 69), (2**22 + 1, "warn", 0)], ids=["lives", "is gone"]
)
def test_an_agent_that_is_parked_is_a_failure_while_it_lives(ready: Path, pid: int, level: str, code: int) -> None:
    report = Report(pid=pid, state="parked", code="credential_revoked", error="Ask for a new one.")
    health.make_folder(ready.parent / "run")
    (ready.parent / "run" / health.FILE).write_text(json.dumps(asdict(report)))
    found = find("agent")
    assert (found.level, found.exit_code) == (level, code)
    assert (code == 0) is ("credential_revoked" not in found.text)


def test_a_missing_state_folder_is_told(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_AGENT_STATE_DIR", str(ready / "nowhere"))
    assert find("volume state").exit_code == 78


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[ControlPlane, Path]]:
    """A control plane whose certificate ends in three days, and the CA behind it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=3)).configure_cert(context)
    plane = ControlPlane(context)
    yield plane, tmp_path / "ca.pem"
    plane.close()


def test_a_certificate_that_ends_soon_is_warned_of(
    ready: Path, secured: tuple[ControlPlane, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELFORGE_AGENT_CONTROL_PLANE_URL", secured[0].url)
    monkeypatch.setenv("MODELFORGE_AGENT_CA_CERT_PATH", str(secured[1]))
    found = find("TLS")
    assert found.level == "warn"
    assert "renew it soon" in found.text


@pytest.mark.parametrize(
    ("life", "left", "soon"),
    [
        (timedelta(days=365), timedelta(days=15), False),
        (timedelta(days=365), timedelta(days=13), True),
        (timedelta(hours=12), timedelta(hours=5), False),
        (timedelta(hours=12), timedelta(hours=3), True),
    ],
    ids=["a year's, in time", "a year's, late", "a machine's, in time", "a machine's, late"],
)
def test_a_certificate_that_a_machine_renews_is_not_soon_to_end(life: timedelta, left: timedelta, soon: bool) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert doctor.expires_soon(now + left - life, now + left, now) is soon


def test_an_unknown_ca_is_told_with_the_variable_to_set(
    ready: Path, secured: tuple[ControlPlane, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELFORGE_AGENT_CONTROL_PLANE_URL", secured[0].url)
    assert "MODELFORGE_AGENT_CA_CERT_PATH" in find("TLS").text


def test_a_proxys_password_is_not_printed(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_AGENT_PROXY", "http://user:s3cret@127.0.0.1:9")
    assert "s3cret" not in "".join(map(str, doctor.examine()))
    assert find("proxy").text == "through 127.0.0.1:9"


def test_as_a_command_it_prints_lines_and_exits_with_the_first_failures_code(ready: Path, plane: ControlPlane) -> None:
    env = environment(ready.parent, plane.url)
    fine = command(env, "doctor")
    assert fine.returncode == 0
    assert "ok    control plane" in fine.stdout
    assert CREDENTIAL[10:] not in fine.stdout
    assert (
        command(env | {"MODELFORGE_AGENT_CONTROL_PLANE_URL": "https://modelforge.invalid"}, "doctor").returncode == 69
    )
