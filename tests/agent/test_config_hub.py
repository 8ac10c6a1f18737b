"""What the environment says about the Hub, and how fast models may be fetched from it."""

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent import config, logs
from agent.bandwidth import Bandwidth
from agent.config import Config, ConfigError

URL = "MODELFORGE_AGENT_CONTROL_PLANE_URL"
LIMIT = "MODELFORGE_AGENT_BANDWIDTH_LIMIT"
QUIET = "MODELFORGE_AGENT_QUIET_HOURS"


def load(**variables: str) -> Config:
    return config.load({URL: "https://modelforge.example"} | variables)


def faults(**variables: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(**variables)
    return error.value.faults


@pytest.fixture(autouse=True)
def in_utc() -> Iterator[None]:
    """Local time is that of TZ, whatever the machine's."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_the_hub_is_the_public_one_unless_told_otherwise() -> None:
    assert load().hub.hf_endpoint == "https://huggingface.co"
    assert load(HF_ENDPOINT="https://mirror.example/hub/").hub.hf_endpoint == "https://mirror.example/hub"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://mirror.example", "Use https://"),
        ("ftp://mirror.example", "must start with https://"),
        ("mirror.example", "must start with https://"),
        ("https://user:pass@mirror.example", "user name or password"),
        ("https://mirror.example?token=x", "query"),
        ("https://[::1", "is no address"),
    ],
    ids=["plain-http", "ftp", "no-scheme", "password", "query", "bracket"],
)
def test_a_hub_that_cannot_be_used_is_named_with_the_remedy(url: str, words: str) -> None:
    (fault,) = faults(HF_ENDPOINT=url)
    assert fault.startswith("HF_ENDPOINT ")
    assert words in fault
    assert "pass" not in fault.replace("password", "")


def test_a_stand_in_on_this_machine_may_speak_plain_http() -> None:
    assert load(HF_ENDPOINT="http://127.0.0.1:8080").hub.hf_endpoint == "http://127.0.0.1:8080"


@pytest.mark.parametrize("token", ["hf_a b", "hf_ä", "hf_a\x7f"], ids=["blank", "umlaut", "control"])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token: str) -> None:
    (fault,) = faults(MODELFORGE_HF_TOKEN=token)
    assert fault.startswith("MODELFORGE_HF_TOKEN ")
    assert token not in fault


def test_the_token_comes_from_its_file_and_shows_in_no_repr(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_fromafile\n")
    found = load(MODELFORGE_HF_TOKEN_FILE=str(tmp_path / "token"))
    assert found.hub.hf_token is not None
    assert found.hub.hf_token.reveal() == "hf_fromafile"
    assert "hf_fromafile" not in repr(found)


def test_a_token_of_any_shape_is_hidden_from_the_log() -> None:
    load(MODELFORGE_HF_TOKEN="mirrors-own-0815-secret")
    record = logging.makeLogRecord({"msg": "sent mirrors-own-0815-secret there", "levelname": "INFO"})
    assert "0815" not in logs.JsonLines().format(record)
    assert "0815" not in logs.PlainText().format(record)


def test_a_token_of_the_hubs_own_library_is_told_to_be_unheard() -> None:
    (warning,) = load(HF_TOKEN="hf_unheard1").warnings
    assert warning.startswith("HF_TOKEN is not read; set MODELFORGE_HF_TOKEN")
    assert "hf_unheard1" not in warning
    assert load(HF_TOKEN="hf_unheard1", MODELFORGE_HF_TOKEN="hf_heard123").warnings == []


@pytest.mark.parametrize(
    ("variables", "proxy", "no_proxy"),
    [
        ({}, None, ""),
        ({"HTTPS_PROXY": "http://corp:3128"}, "http://corp:3128", ""),
        ({"HTTPS_PROXY": "http://corp:3128", "NO_PROXY": "x.org"}, "http://corp:3128", "x.org"),
        ({"HTTPS_PROXY": "http://corp:3128", "NO_PROXY": "huggingface.co"}, None, "huggingface.co"),
        ({"HTTPS_PROXY": "http://corp:3128", "MODELFORGE_AGENT_HUB_PROXY": "none"}, None, ""),
        ({"MODELFORGE_AGENT_HUB_PROXY": "own:3128", "NO_PROXY": "huggingface.co"}, "http://own:3128", ""),
        ({"MODELFORGE_AGENT_PROXY": "http://control:3128"}, None, ""),
    ],
    ids=["none", "environment", "others-excluded", "hub-excluded", "direct", "own", "control-planes"],
)
def test_the_hubs_proxy_is_its_own_else_the_environments(
    variables: dict[str, str], proxy: str | None, no_proxy: str
) -> None:
    hub = load(**variables).hub
    assert (hub.hub_proxy, hub.hub_no_proxy) == (proxy, no_proxy)


def test_the_hubs_ca_is_not_the_control_planes(ca_file: Path) -> None:
    assert load(MODELFORGE_AGENT_CA_CERT_PATH=str(ca_file)).hub.hub_ca_file is None
    found = load(MODELFORGE_AGENT_HUB_CA_CERT_PATH=str(ca_file))
    assert found.hub.hub_ca_file == ca_file
    assert found.link.ca_file is None


def test_a_hub_ca_that_is_none_is_told() -> None:
    (fault,) = faults(MODELFORGE_AGENT_HUB_CA_CERT_PATH="/nowhere/ca.pem")
    assert fault.startswith("MODELFORGE_AGENT_HUB_CA_CERT_PATH ")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("50MB", 50_000_000),
        ("50MB/s", 50_000_000),
        ("1.5GB", 1_500_000_000),
        ("100KB", 100_000),
        ("100kB", 100_000),
        ("2MiB", 2 * 2**20),
        ("1GiB", 2**30),
        ("250000", 250_000),
        ("none", None),
        ("", None),
    ],
)
def test_a_limit_is_bytes_per_second_in_peoples_units(text: str, meant: int | None) -> None:
    assert load(**{LIMIT: text}).bandwidth == Bandwidth(meant)


@pytest.mark.parametrize("text", ["50Mb", "50mb", "fast", "-1MB", "99KB", "0", "1e9", "5 MB", "MB", "nan"])
def test_a_limit_that_is_none_is_named(text: str) -> None:
    """50Mb would be megabits, eight times less: nobody guesses here."""
    (fault,) = faults(**{LIMIT: text})
    assert fault.startswith(f"{LIMIT} must be an amount of bytes")


@pytest.mark.parametrize(
    ("clock", "limit"),
    [
        ("07:59", 50_000_000),
        ("08:00", 10_000_000),
        ("17:59", 10_000_000),
        ("18:00", 50_000_000),
        ("22:00", None),
        ("23:59", None),
        ("00:00", None),
        ("05:59", None),
        ("06:00", 50_000_000),
    ],
)
def test_a_window_of_the_day_counts_from_its_start_until_its_end(clock: str, limit: int | None) -> None:
    found = load(**{LIMIT: "50MB", QUIET: "08:00-18:00=10MB, 22:00-06:00=none"}).bandwidth
    assert found.at(datetime.fromisoformat(f"2026-03-01T{clock}:00+00:00")) == limit


def test_windows_are_by_the_local_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(**{QUIET: "08:00-18:00=10MB"}).bandwidth
    assert found.at(datetime(2026, 3, 1, 23, tzinfo=UTC)) is None
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert found.at(datetime(2026, 3, 1, 23, tzinfo=UTC)) == 10_000_000


def test_of_two_windows_that_overlap_the_first_counts() -> None:
    found = load(**{QUIET: "09:00-10:00=1MB,08:00-24:00=2MB"}).bandwidth
    assert found.at(datetime(2026, 3, 1, 9, 30, tzinfo=UTC)) == 1_000_000
    assert found.at(datetime(2026, 3, 1, 23, 30, tzinfo=UTC)) == 2_000_000


@pytest.mark.parametrize(
    "text",
    ["08:00-18:00", "8-18=10MB", "25:00-18:00=10MB", "08:00-08:00=10MB", "08:60-09:00=1MB", "08:00-18:00=10MB,", "x"],
)
def test_quiet_hours_out_of_shape_are_named_with_an_example(text: str) -> None:
    (fault,) = faults(**{QUIET: text})
    assert fault.startswith(f"{QUIET} must be windows of the day such as 08:00-18:00=10MB")


def test_a_limit_of_a_window_has_the_same_bounds() -> None:
    (fault,) = faults(**{QUIET: "08:00-18:00=1KB"})
    assert fault.startswith(f"{QUIET} must be an amount of bytes")


def test_the_quarantine_is_bounded_as_told() -> None:
    assert (load().quarantine_max_files, load().quarantine_max_bytes) == (100, 50_000_000_000)
    found = load(MODELFORGE_AGENT_QUARANTINE_MAX_FILES="0", MODELFORGE_AGENT_QUARANTINE_MAX_BYTES="1GiB")
    assert (found.quarantine_max_files, found.quarantine_max_bytes) == (0, 2**30)
