"""The real agent process: ``python -m agent run`` against a scripted control plane, over real sockets."""

import signal
import ssl
from collections.abc import Callable
from pathlib import Path

import msgspec
import trustme

from agent import protocol, wire
from tests.agent.processes import Agent, command, environment, joined
from tests.agent.scripted import CREDENTIAL, DROP, RENEWED, TOKEN, ControlPlane, page, problem

Start = Callable[[dict[str, str]], Agent]
JOINING = {"MODELFORGE_AGENT_ENROLLMENT_TOKEN": TOKEN}


def test_it_joins_beats_tells_facts_and_says_goodbye(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """Field cases 9 and 38."""
    env = environment(tmp_path, plane.url, **JOINING, MODELFORGE_AGENT_HOSTNAME="server_01")
    agent = start(env)
    plane.wait_for(protocol.FACTS)
    plane.wait(lambda: any("telemetry" in r.json for r in plane.asked(protocol.HEARTBEAT)), "telemetry on a beat")
    cmdline = Path(f"/proc/{agent.process.pid}/cmdline").read_text()
    assert command(env, "health").returncode == 0
    assert agent.stop(signal.SIGTERM) == 0

    enroll, facts, goodbye = (plane.asked(path)[0] for path in (protocol.ENROLL, protocol.FACTS, protocol.GOODBYE))
    assert enroll.bearer == TOKEN
    assert (tmp_path / "state/node-id").read_text().strip() == enroll.json["node_id"]
    assert (tmp_path / "state/node-credential").read_text().strip() == CREDENTIAL
    told = msgspec.json.decode(facts.body, type=wire.Facts)
    assert told.host.hostname == "server_01"
    assert [volume.name for volume in told.volumes] == ["state", "hf-cache", "artifacts", "quarantine"]
    assert goodbye.json == {"boot_id": enroll.json["boot_id"], "reason": "stopped by SIGTERM"}
    paths = [request.path for request in plane.requests if request.path != protocol.CLAIM]  # one may be on its way yet
    assert paths[-1] == protocol.GOODBYE  # no beat after it
    assert len(plane.asked(protocol.FACTS)) == 1
    assert command(env, "health").returncode == 1
    for secret in (TOKEN, CREDENTIAL):
        assert secret[10:] not in agent.output + cmdline


def test_after_a_restart_it_is_the_same_node_and_a_leftover_token_is_not_used(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    """Field case 8."""
    env = environment(tmp_path, plane.url, **JOINING)
    first = start(env)
    plane.wait_for(protocol.HEARTBEAT)
    first.stop()
    before = len(plane.asked(protocol.HEARTBEAT))
    second = start(env)
    beat = plane.wait_for(protocol.HEARTBEAT, before + 1)
    second.stop()
    assert len(plane.asked(protocol.ENROLL)) == 1
    assert beat.bearer == CREDENTIAL
    assert beat.json["boot_id"] != plane.asked(protocol.HEARTBEAT)[0].json["boot_id"]
    assert beat.json["sequence"] == 1
    warnings = [line["message"] for line in second.messages if line["level"] == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith("MODELFORGE_AGENT_ENROLLMENT_TOKEN is set, and this node has a credential")


def test_killed_and_started_at_once_it_goes_on_with_a_new_boot(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    """Field case 86."""
    joined(tmp_path)
    env = environment(tmp_path, plane.url)
    first = start(env)
    plane.wait_for(protocol.HEARTBEAT)
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert command(env, "health").stdout.startswith("not running")
    heard = len(plane.asked(protocol.HEARTBEAT))
    start(env)
    beat = plane.wait_for(protocol.HEARTBEAT, heard + 1)
    assert beat.json["boot_id"] != plane.asked(protocol.HEARTBEAT)[0].json["boot_id"]
    assert plane.asked(protocol.GOODBYE) == []


def test_a_second_agent_on_the_same_state_ends_with_75(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """Field case 1, on one machine."""
    joined(tmp_path)
    env = environment(tmp_path, plane.url)
    start(env)
    plane.wait_for(protocol.HEARTBEAT)
    second = command(env, "run")
    assert second.returncode == 75
    assert "Another agent" in second.stdout


def test_a_lost_answer_to_the_enrollment_is_asked_for_again(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """Field case 3."""
    plane.answer(protocol.ENROLL, DROP, page(503))
    start(environment(tmp_path, plane.url, **JOINING))
    plane.wait_for(protocol.HEARTBEAT)
    asked = plane.asked(protocol.ENROLL)
    assert len(asked) == 3
    assert len({(request.json["node_id"], request.bearer) for request in asked}) == 1


def test_it_parks_on_a_refusal_and_takes_a_new_credential_without_a_restart(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    """Field cases 14, 19 and 85."""
    joined(tmp_path)
    plane.rules[protocol.HEARTBEAT] = lambda request: (
        plane.beat_reply() if request.bearer == RENEWED else problem(401, "credential_revoked")
    )
    env = environment(tmp_path, plane.url)
    agent = start(env)
    plane.wait_for(protocol.HEARTBEAT)
    _until_health(env, "parked (credential_revoked)")
    assert agent.process.poll() is None
    done = command(env, "credential", "set", stdin=f"{RENEWED}\n")
    assert done.returncode == 0, done.stderr
    assert RENEWED[10:] not in done.stdout + done.stderr
    plane.wait(lambda: plane.asked(protocol.HEARTBEAT)[-1].bearer == RENEWED, "a beat with the new credential")
    _until_health(env, "healthy")
    assert len(plane.asked(protocol.HEARTBEAT)) < 12
    assert agent.stop() == 0
    assert CREDENTIAL[10:] not in agent.output


def test_a_parked_agent_takes_what_enroll_brings(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """A revoked node is let in again beside its running agent, with a new invitation."""
    joined(tmp_path)
    (tmp_path / "state/node-credential").write_text(RENEWED)  # by now revoked
    plane.rules[protocol.HEARTBEAT] = lambda request: (
        plane.beat_reply() if request.bearer == CREDENTIAL else problem(401, "credential_revoked")
    )
    env = environment(tmp_path, plane.url)
    agent = start(env)
    plane.wait_for(protocol.HEARTBEAT)
    done = command(env, "enroll", "--token-file", "-", stdin=TOKEN)
    assert done.returncode == 0, done.stderr
    plane.wait(lambda: plane.asked(protocol.HEARTBEAT)[-1].bearer == CREDENTIAL, "a beat with the new credential")
    assert agent.process.poll() is None


def test_gateway_errors_are_outlasted(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """Field case 40."""
    joined(tmp_path)
    plane.answer(protocol.HEARTBEAT, page(503), DROP)
    agent = start(environment(tmp_path, plane.url))
    plane.wait_for(protocol.HEARTBEAT, 3)
    plane.wait_for(protocol.FACTS)
    assert agent.stop() == 0


def test_stopping_does_not_wait_for_a_control_plane_that_is_gone(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    joined(tmp_path)
    agent = start(environment(tmp_path, plane.url))
    plane.wait_for(protocol.FACTS)
    plane.close()
    assert agent.stop(signal.SIGINT) == 0


def test_it_believes_the_private_ca_that_it_was_given(start: Start, tmp_path: Path) -> None:
    """Field case 28."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    plane = ControlPlane(context)
    try:
        joined(tmp_path)
        stranger = command(environment(tmp_path, plane.url), "enroll", "--token-file", "-", stdin=TOKEN)
        assert stranger.returncode == 69
        assert "MODELFORGE_AGENT_CA_CERT_PATH" in stranger.stderr
        start(environment(tmp_path, plane.url, MODELFORGE_AGENT_CA_CERT_PATH=str(tmp_path / "ca.pem")))
        facts = plane.wait_for(protocol.FACTS)
        assert facts.json["agent"]["ca"] == "file"
        assert facts.json["agent"]["tls_verify"] is True
    finally:
        plane.close()


def _until_health(env: dict[str, str], words: str) -> None:
    """Ask ``health`` until it says so: each ask is a process, which takes its time."""
    said = ""
    for _ in range(60):
        said = command(env, "health").stdout
        if said.startswith(words):
            return
    raise AssertionError(f"health says {said!r}, not {words!r}")
