"""What the agent tells about how it runs itself."""

from pathlib import Path

import pytest

from agent import config, daemon
from agent.state import State

URL = "MODELFORGE_AGENT_CONTROL_PLANE_URL"
HTTPS = {URL: "https://modelforge.example"}
INSECURE = {"MODELFORGE_AGENT_ALLOW_INSECURE_TLS": "true"}
UNVERIFIED = {"MODELFORGE_AGENT_TLS_VERIFY": "false"}


@pytest.mark.parametrize(
    ("variables", "verified", "ca", "proxy"),
    [
        (HTTPS, True, "system", False),
        (HTTPS | {"MODELFORGE_AGENT_PROXY": "http://user:pass@proxy:3128"}, True, "system", True),
        (HTTPS | UNVERIFIED | INSECURE, False, "none", False),
        ({URL: "http://modelforge.example"} | INSECURE, False, "none", False),
        ({URL: "https://127.0.0.1:8443"} | UNVERIFIED, False, "none", False),
        ({URL: "http://127.0.0.1:8000"}, True, "none", False),
    ],
)
def test_how_it_reaches_the_control_plane_is_a_fact(
    tmp_path: Path, variables: dict[str, str], verified: bool, ca: str, proxy: bool
) -> None:
    """Field case 29."""
    told = daemon.agent_facts(config.load(dict(variables)), State(tmp_path))
    assert (told.tls_verify, told.ca, told.proxy) == (verified, ca, proxy)
    assert "pass" not in repr(told)


def test_an_ephemeral_state_is_a_fact(tmp_path: Path) -> None:
    """Field case 10."""
    state = State(tmp_path)
    state.ephemeral = True
    assert daemon.agent_facts(config.load(dict(HTTPS)), state).state_ephemeral
    assert not daemon.agent_facts(config.load(dict(HTTPS)), State(tmp_path)).state_ephemeral


def test_the_named_volumes_are_the_four_of_the_mission() -> None:
    volumes = daemon.volumes_of(config.load(dict(HTTPS)))
    assert [(volume.name, str(volume.path)) for volume in volumes] == [
        ("state", "/data/state"),
        ("hf-cache", "/data/hf-cache"),
        ("artifacts", "/data/artifacts"),
        ("quarantine", "/data/quarantine"),
    ]


def test_what_it_can_be_ordered_to_do_is_a_fact(tmp_path: Path) -> None:
    told = daemon.agent_facts(config.load(dict(HTTPS)), State(tmp_path))
    assert told.job_types == ["artifact.acquire.v1", "artifact.verify.v1", "artifact.remove.v1"]
