"""The doctor on models: does the Hub answer, is its token good, and what becomes of the storage roots."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import trustme

from agent import checkup, config, doctor, protocol, roots, wire
from agent.acquire.places import MARKER
from agent.bandwidth import Bandwidth, Window
from agent.clock import SystemClock
from agent.finding import Finding
from agent.health import Health
from agent.hub import Hub
from agent.roots import Ground
from agent.variables import Secret
from tests.agent.processes import command, environment, joined
from tests.agent.scripted import Answer, ControlPlane, page, problem, said
from tests.agent.secured import Serve

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
OTHER = UUID("22222222-2222-4222-8222-222222222222")
ROOT = UUID("11111111-1111-4111-8111-111111111111")
TOKEN = Secret("hf_doctorstoken1", "MODELFORGE_HF_TOKEN")
WHOAMI = "/api/whoami-v2"


def test_a_hub_that_answers_is_fine_and_is_shown_no_token_that_is_not_there(plane: ControlPlane) -> None:
    found = checkup.of_hub(Hub(hf_endpoint=plane.url))
    assert (found.level, found.text) == ("ok", f"{plane.url} answers")
    (request,) = plane.requests
    assert (request.method, request.path) == ("HEAD", "/")
    assert "authorization" not in request.headers


def test_a_good_token_is_told_with_its_owner_and_is_not_shown(plane: ControlPlane) -> None:
    plane.always(WHOAMI, said({"name": "our-team", "auth": {}}))
    found = checkup.of_hub(Hub(hf_endpoint=plane.url, hf_token=TOKEN))
    assert found.level == "ok"
    assert "takes the token of our-team" in found.text
    assert plane.requests[0].bearer == TOKEN.reveal()
    assert TOKEN.reveal() not in str(found)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"{", b'{"name": 7}', b"\xff"], ids=range(5))
def test_an_owner_that_is_not_told_is_left_out(plane: ControlPlane, body: bytes) -> None:
    plane.always(WHOAMI, Answer(200, body))
    assert checkup.of_hub(Hub(hf_endpoint=plane.url, hf_token=TOKEN)).text.endswith("takes the token")


def test_a_bad_token_is_a_failure_with_the_variable_to_mend(plane: ControlPlane) -> None:
    plane.always(WHOAMI, page(401))
    found = checkup.of_hub(Hub(hf_endpoint=plane.url, hf_token=TOKEN))
    assert (found.level, found.exit_code) == ("FAIL", 78)
    assert "MODELFORGE_HF_TOKEN" in found.text


@pytest.mark.parametrize(("status", "level"), [(301, "ok"), (403, "ok"), (404, "ok"), (500, "warn"), (503, "warn")])
def test_only_a_hub_in_trouble_is_warned_of(plane: ControlPlane, status: int, level: str) -> None:
    plane.always("/", page(status, Location="https://elsewhere.example/"))
    assert checkup.of_hub(Hub(hf_endpoint=plane.url)).level == level


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("https://hub.invalid", "(dns)"),
        ("http://127.0.0.1:9", "(refused)"),
    ],
)
def test_a_hub_that_is_not_there_is_warned_of_with_what_to_check(endpoint: str, words: str) -> None:
    found = checkup.of_hub(Hub(hf_endpoint=endpoint))
    assert (found.level, found.exit_code) == ("warn", 0)
    assert words in found.text
    assert "HF_ENDPOINT" in found.text
    assert "CONTROL_PLANE" not in found.text


def test_an_unknown_ca_names_the_hubs_own_variable(serve: Serve, authority: trustme.CA, ca_file: Path) -> None:
    secured = serve("127.0.0.1")
    found = checkup.of_hub(Hub(hf_endpoint=secured.url))
    assert "MODELFORGE_AGENT_HUB_CA_CERT_PATH" in found.text
    assert checkup.of_hub(Hub(hf_endpoint=secured.url, hub_ca_file=ca_file)).level == "ok"


@pytest.fixture
def setup(tmp_path: Path) -> config.Config:
    """An agent whose artifact volume lies in the test's folder."""
    (tmp_path / "artifacts").mkdir()
    return config.load(environment(tmp_path, "http://127.0.0.1:9"))


def approve(setup: config.Config, name: str, node: UUID = NODE) -> Path:
    path = setup.artifact_dir / name
    ground = Ground(node_id=node, artifact_dir=setup.artifact_dir, ephemeral_ok=True)
    order = wire.RootOrder(root_id=ROOT, path=str(path), approve=True)
    assert roots.prove(order, ground, now=datetime.now(UTC)).approved
    return path


def of_roots(setup: config.Config) -> list[Finding]:
    return list(checkup.of_roots(setup, NODE))


def test_without_roots_it_says_where_to_make_one(setup: config.Config) -> None:
    (found,) = of_roots(setup)
    assert found.level == "ok"
    assert "register one" in found.text


def test_each_root_is_proven_where_its_marker_lies(setup: config.Config) -> None:
    approve(setup, "a")
    approve(setup, "deep/er/b")
    assert [(found.level, found.text.split(": ")[0]) for found in of_roots(setup)] == [
        ("ok", str(setup.artifact_dir / "a")),
        ("ok", str(setup.artifact_dir / "deep/er/b")),
    ]


def test_the_folders_of_a_root_are_not_searched(setup: config.Config) -> None:
    inner = approve(setup, "a") / "models"
    inner.mkdir()
    (inner / MARKER).write_text("{}")
    assert len(of_roots(setup)) == 1


def test_a_root_of_another_node_and_a_damaged_marker_are_warned_of(setup: config.Config) -> None:
    approve(setup, "a", OTHER)
    marker = approve(setup, "b") / MARKER
    marker.chmod(0o644)
    marker.write_text("{")
    first, second = of_roots(setup)
    assert (first.level, second.level) == ("warn", "warn")
    assert str(OTHER) in first.text
    assert "damaged" in second.text


def test_an_artifact_volume_that_is_not_there_is_told_once_elsewhere(setup: config.Config) -> None:
    setup.artifact_dir.rmdir()
    assert of_roots(setup) == []


def test_the_command_shows_both_and_no_token(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined(tmp_path)
    for name in ("hf-cache", "artifacts", "quarantine"):
        (tmp_path / name).mkdir()
    plane.always(WHOAMI, page(401))
    plane.always(protocol.HEARTBEAT, problem(401, "unauthenticated"))
    variables = {"HF_ENDPOINT": plane.url, "MODELFORGE_HF_TOKEN": "mirrors-own-secret-4711"}
    done = command(environment(tmp_path, plane.url, **variables), "doctor")
    assert "FAIL  Hub" in done.stdout
    assert "ok    storage roots" in done.stdout
    assert "4711" not in done.stdout + done.stderr
    assert done.returncode == 78


def test_a_finding_hides_the_token_wherever_it_slips_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in environment(tmp_path, "http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MODELFORGE_HF_TOKEN", "mirrors-own-secret-0815")
    list(doctor.examine())
    assert "0815" not in str(Finding("ok", "x", "the token mirrors-own-secret-0815 slipped in"))


def test_status_tells_of_the_job_that_runs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    health = Health(tmp_path / "run", SystemClock())
    health.job("j-1", "fetch", 42)
    found = json.loads(command(environment(tmp_path, "http://127.0.0.1:9"), "status", "--json").stdout)
    assert (found["job_id"], found["job_phase"], found["job_percent"]) == ("j-1", "fetch", 42)
    health.job("", "", 0)
    found = json.loads(command(environment(tmp_path, "http://127.0.0.1:9"), "status", "--json").stdout)
    assert (found["job_id"], found["job_phase"], found["job_percent"]) == ("", "", None)


def test_the_limit_that_holds_now_is_told_with_the_clock_that_it_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    local = now.astimezone()
    window = Window(local.time(), (local + timedelta(minutes=1)).time(), 12_500_000)
    (found,) = checkup.of_bandwidth(Bandwidth(None, (window,)), now)
    assert found.text == f"12.5 MB a second now, at {local:%H:%M %Z} by the local clock"
    (after,) = checkup.of_bandwidth(Bandwidth(None, (window,)), now + timedelta(minutes=1))
    assert after.text.startswith("no limit now")
    assert list(checkup.of_bandwidth(Bandwidth(), now)) == []
