"""The commands that people and scripts use: what they print, and their exit codes."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from agent import protocol, wire
from agent.__main__ import main
from tests.agent.processes import command, environment, joined
from tests.agent.scripted import CREDENTIAL, DROP, TOKEN, ControlPlane, page, problem

JOINING = {"MODELFORGE_AGENT_ENROLLMENT_TOKEN": TOKEN}


def test_enroll_joins_with_a_token_from_standard_input(plane: ControlPlane, tmp_path: Path) -> None:
    env = environment(tmp_path, plane.url)
    done = command(env, "enroll", "--token-file", "-", stdin=f"{TOKEN}\n")
    assert done.returncode == 0, done.stderr
    assert plane.requests[0].bearer == TOKEN
    again = command(env, "enroll")
    assert again.returncode == 0
    assert "Already enrolled" in again.stdout
    assert len(plane.requests) == 1
    assert TOKEN[10:] not in done.stdout + done.stderr


def test_enroll_again_by_standard_input_blames_no_variable(plane: ControlPlane, tmp_path: Path) -> None:
    joined(tmp_path)
    done = command(environment(tmp_path, plane.url), "enroll", "--token-file", "-", stdin=TOKEN)
    assert done.returncode == 0, done.stderr
    assert plane.requests[0].bearer == TOKEN
    assert "MODELFORGE_AGENT_ENROLLMENT_TOKEN" not in done.stderr


def test_a_bad_token_of_standard_input_is_said_to_come_from_there(plane: ControlPlane, tmp_path: Path) -> None:
    done = command(environment(tmp_path, plane.url), "enroll", "--token-file", "-", stdin="letmein")
    assert done.returncode == 78
    assert done.stderr.startswith("standard input holds no enrollment token")


def test_a_reader_that_has_seen_enough_gets_no_traceback(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    line = shlex.join([sys.executable, "-u", "-m", "agent", "doctor"])  # unbuffered: each line meets the closed pipe
    done = subprocess.run(["sh", "-c", f"{line} | true"], env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (problem(409, "token_used"), 77),
        (problem(410, "token_expired"), 77),
        (problem(401, "token_unknown"), 77),
        (problem(426, "protocol_unsupported", protocols=[2]), 77),
        (problem(429, "throttled", retryable=True), 75),
        (page(503), 75),
        (page(200), 69),
        (page(301, Location="https://elsewhere.example" + protocol.ENROLL), 69),
        (DROP, 69),
    ],
)
def test_enroll_fails_fast_with_a_code_that_says_what_it_was(
    plane: ControlPlane, tmp_path: Path, answer: object, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 20. In this process: nine interpreters would only cost time."""
    plane.rules[protocol.ENROLL] = lambda _: answer  # type: ignore[return-value, assignment]
    for name, value in environment(tmp_path, plane.url, **JOINING).items():
        monkeypatch.setenv(name, value)
    assert main(["enroll"]) == code
    assert len(plane.requests) == 1


def test_status_tells_all_but_the_credential(plane: ControlPlane, tmp_path: Path) -> None:
    joined(tmp_path)
    found = command(environment(tmp_path, plane.url), "status", "--json")
    told = json.loads(found.stdout)
    assert told["node_id"] == "6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11"
    assert told["credential"] == "stored"
    assert told["healthy"] is False
    assert CREDENTIAL[10:] not in found.stdout


def test_facts_are_printed_as_they_would_be_told(tmp_path: Path) -> None:
    env = environment(tmp_path, "")
    found = command(env, "facts", "--json")
    assert msgspec.json.decode(found.stdout.encode(), type=wire.Facts).host.kernel


@pytest.mark.parametrize("text", ["", "mfn_", TOKEN, "letmein"])
def test_credential_set_refuses_what_is_none_and_changes_nothing(tmp_path: Path, text: str) -> None:
    joined(tmp_path)
    found = command(environment(tmp_path, ""), "credential", "set", stdin=text)
    assert found.returncode == 78
    assert (tmp_path / "state/node-credential").read_text().strip() == CREDENTIAL
    assert TOKEN[10:] not in found.stderr
    assert "letmein" not in found.stderr


@pytest.mark.parametrize("arguments", [[], ["bogus"], ["credential"], ["run", "--token", "x"]])
def test_wrong_usage_is_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 64
    assert "usage:" in capsys.readouterr().err
