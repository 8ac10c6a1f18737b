"""The configuration: every fault at once, each naming its variable, and never a secret."""

from pathlib import Path

import pytest

from agent import config
from agent.config import Config, ConfigError
from agent.variables import KNOWN, nearest
from tests.agent.scripted import TOKEN

URL = "MODELFORGE_AGENT_CONTROL_PLANE_URL"
HTTPS = "https://modelforge.example"


def load(**variables: str) -> Config:
    return config.load({URL: HTTPS} | variables)


def faults(**variables: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(**variables)
    return error.value.faults


def test_the_mission_documents_variables_are_enough() -> None:
    found = config.load(
        {
            URL: HTTPS,
            "MODELFORGE_AGENT_ENROLLMENT_TOKEN": TOKEN,
            "MODELFORGE_AGENT_DISPLAY_NAME": "Server 01",
            "MODELFORGE_AGENT_HOSTNAME": "server01",
            "MODELFORGE_AGENT_TLS_VERIFY": "true",
            "MODELFORGE_AGENT_STATE_VOLUME": "/mnt/user/appdata/modelforge-node-agent/state",
            "MODELFORGE_AGENT_HF_CACHE_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/hf-cache",
            "MODELFORGE_AGENT_ARTIFACT_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/artifacts",
            "MODELFORGE_AGENT_QUARANTINE_VOLUME": "/mnt/cache/appdata/modelforge-node-agent/quarantine",
            "MODELFORGE_HF_TOKEN": "hf_abcdefgh",
        }
    )
    assert found.link.url == HTTPS
    assert found.display_name == "Server 01"
    assert found.hostname == "server01"
    assert found.token is not None
    assert found.token.reveal() == TOKEN
    assert found.state_dir == Path("/data/state")
    assert found.artifact_dir == Path("/data/artifacts")
    assert found.link.ca == "system"
    assert found.link.verified
    assert found.warnings == []


def test_a_missing_address_is_named_with_its_remedy() -> None:
    with pytest.raises(ConfigError, match=r"MODELFORGE_AGENT_CONTROL_PLANE_URL is missing\. Set it to"):
        config.load({})


def test_commands_that_speak_to_nobody_need_no_address() -> None:
    assert config.load({}, need_control_plane=False).link.url == ""


def test_all_faults_are_told_at_once() -> None:
    found = faults(
        **{
            URL: "ftp://x",
            "MODELFORGE_AGENT_TLS_VERIFY": "maybe",
            "MODELFORGE_AGENT_LOG_LEVEL": "loud",
            "MODELFORGE_AGENT_STATE_DIR": "state",
            "MODELFORGE_AGENT_FACTS_INTERVAL": "often",
        }
    )
    assert len(found) == 5


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({URL: "modelforge.example"}, "must start with https://"),
        ({URL: "https://"}, "must start with https://"),
        ({URL: "https://a:b@modelforge.example"}, "user name or password"),
        ({URL: "https://modelforge.example/api/v1"}, "Leave away /api/v1"),
        ({URL: "https://modelforge.example/?x=1"}, "query"),
        ({URL: "https://modelforge.example:99999"}, "is no address"),
        ({URL: "https://[::1"}, "is no address"),
        ({URL: "http://modelforge.example"}, "Use https://"),
        ({"MODELFORGE_AGENT_TLS_VERIFY": "false"}, "MODELFORGE_AGENT_CA_CERT_PATH"),
        ({"MODELFORGE_AGENT_TLS_VERIFY": "nope"}, "must be true or false"),
        ({"MODELFORGE_AGENT_STATE_DIR": "/"}, "never the root"),
        ({"MODELFORGE_AGENT_HOSTNAME": "h" * 300}, "at most 255"),
        ({"MODELFORGE_AGENT_DISPLAY_NAME": "a\nb"}, "on one line"),
        ({"MODELFORGE_AGENT_CA_CERT_PATH": "/nowhere/ca.pem"}, "cannot be read"),
        ({"MODELFORGE_AGENT_PROXY": "socks5://proxy:1080"}, "must be an HTTP proxy"),
        ({"MODELFORGE_AGENT_PROXY": "http://u:12/secret@proxy:3128"}, "percent-encode a password"),
        ({"MODELFORGE_AGENT_PROXY": "http://u:12?secret@proxy:3128"}, "percent-encode a password"),
        ({"MODELFORGE_AGENT_PROXY": "http://u:12#secret@proxy:3128"}, "percent-encode a password"),
        ({"MODELFORGE_AGENT_FACTS_INTERVAL": "nan"}, "number of seconds"),
        ({"MODELFORGE_AGENT_QUARANTINE_MAX_FILES": "many"}, "whole number between 0 and 100000"),
        ({"MODELFORGE_AGENT_QUARANTINE_MAX_FILES": "100001"}, "whole number"),
        ({"MODELFORGE_AGENT_QUARANTINE_MAX_BYTES": "50 giga"}, "amount of bytes"),
    ],
)
def test_a_fault_names_its_variable_and_the_remedy(variables: dict[str, str], words: str) -> None:
    (fault,) = faults(**variables)
    assert fault.startswith("MODELFORGE_AGENT_")
    assert words in fault


def test_a_file_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    (fault,) = faults(MODELFORGE_AGENT_CA_CERT_PATH=str(tmp_path / "ca.pem"))
    assert "without a PEM certificate" in fault


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"])
def test_plain_http_is_fine_on_this_very_machine(url: str) -> None:
    found = load(**{URL: url})
    assert found.link.verified
    assert found.link.ca == "none"


@pytest.mark.parametrize("url", ["http://127.example", "http://10.0.0.1", "http://localhost.example", "http://0.0.0.0"])
def test_what_only_looks_like_this_machine_is_refused_over_plain_http(url: str) -> None:
    (fault,) = faults(**{URL: url})
    assert "in clear" in fault


@pytest.mark.parametrize("variables", [{URL: "http://modelforge.example"}, {"MODELFORGE_AGENT_TLS_VERIFY": "false"}])
def test_the_second_switch_allows_it_and_makes_it_a_visible_fact(variables: dict[str, str]) -> None:
    """Field case 29."""
    found = load(**variables, MODELFORGE_AGENT_ALLOW_INSECURE_TLS="true")
    assert not found.link.verified
    assert found.link.ca == "none"


def test_verification_may_be_off_towards_this_machine() -> None:
    assert load(**{URL: "https://127.0.0.1:8443", "MODELFORGE_AGENT_TLS_VERIFY": "false"}).link.verified


def test_empty_values_count_as_unset() -> None:
    found = load(MODELFORGE_AGENT_ENROLLMENT_TOKEN="", MODELFORGE_AGENT_HOSTNAME=" ", MODELFORGE_AGENT_TLS_VERIFY="")
    assert found.token is None
    assert found.hostname is None
    assert found.link.tls_verify


def test_a_trailing_slash_and_a_path_of_the_proxy_are_kept_right() -> None:
    assert load(**{URL: "https://example.org/modelforge/"}).link.url == "https://example.org/modelforge"


def test_a_secret_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    found = load(MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE=str(tmp_path / "token"))
    assert found.token is not None
    assert found.token.reveal() == TOKEN


def test_a_secret_both_ways_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (fault,) = faults(
        MODELFORGE_AGENT_ENROLLMENT_TOKEN=TOKEN, MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE=str(tmp_path / "token")
    )
    assert "both set" in fault
    assert TOKEN not in fault


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), (b"", "empty"), (b"\xff\xfe", "not a text")])
def test_a_secrets_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    (fault,) = faults(MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE=str(tmp_path / "token"))
    assert words in fault


def test_a_secret_where_its_files_path_should_stand_is_not_shown() -> None:
    (fault,) = faults(MODELFORGE_HF_TOKEN_FILE="top-secret")
    assert fault.startswith("MODELFORGE_HF_TOKEN_FILE names a file that cannot be read (No such file or directory).")
    assert "top-secret" not in fault


def test_secrets_leave_the_environment_and_show_in_no_repr() -> None:
    """Field case 9."""
    environ = {
        URL: HTTPS,
        "MODELFORGE_AGENT_ENROLLMENT_TOKEN": TOKEN,
        "MODELFORGE_HF_TOKEN": "hf_verysecret",
        "MODELFORGE_AGENT_PROXY": "http://user:pass@proxy.example:3128",
    }
    found = config.load(environ)
    assert TOKEN not in str(environ)
    assert "hf_verysecret" not in str(environ)
    for shown in (repr(found), str(found), f"{found.token}", repr(found.token)):
        assert TOKEN not in shown
        assert "hf_verysecret" not in shown
        assert "pass" not in shown


def test_an_unknown_name_is_one_warning_with_the_nearest_known_one() -> None:
    (warning,) = load(MODELFORGE_AGENT_TLS_VERFIY="true", MODELFORGE_SOMETHING_ELSE_ENTIRELY="x").warnings
    assert "MODELFORGE_AGENT_TLS_VERFIY (did you mean MODELFORGE_AGENT_TLS_VERIFY?)" in warning
    assert "MODELFORGE_SOMETHING_ELSE_ENTIRELY" in warning


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MODELFORGE_AGENT_TOKN", "MODELFORGE_AGENT_ENROLLMENT_TOKEN"),
        ("MODELFORGE_AGENT_CONTROLPLANE_URL", "MODELFORGE_AGENT_CONTROL_PLANE_URL"),
        ("MODELFORGE_AGENT_STATEDIR", "MODELFORGE_AGENT_STATE_DIR"),
        ("MODELFORGE_AGENT_FOO", ""),
        ("MODELFORGE_BANANA", ""),
    ],
)
def test_the_nearest_name_is_found_word_by_word(written: str, meant: str) -> None:
    assert nearest(written, KNOWN) == meant


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://corp:3128"}, "http://corp:3128"),
        ({"https_proxy": "corp:3128"}, "http://corp:3128"),
        ({"HTTP_PROXY": "http://corp:3128"}, None),
        ({"ALL_PROXY": "http://corp:3128"}, "http://corp:3128"),
        ({"HTTPS_PROXY": "http://corp:3128", "NO_PROXY": ".example"}, None),
        ({"HTTPS_PROXY": "http://corp:3128", "NO_PROXY": "other.org"}, "http://corp:3128"),
        ({"HTTPS_PROXY": "http://corp:3128", "MODELFORGE_AGENT_PROXY": "http://own:3128"}, "http://own:3128"),
        ({"HTTPS_PROXY": "http://corp:3128", "MODELFORGE_AGENT_PROXY": "none"}, None),
        ({"HTTPS_PROXY": "http://corp:3128", URL: "https://127.0.0.1:8443"}, None),
    ],
)
def test_the_proxy_is_the_agents_own_else_the_environments(variables: dict[str, str], proxy: str | None) -> None:
    """Field case 30."""
    assert load(**variables).link.proxy == proxy
