"""The Hub's own library asks in a process of its own, which knows nothing of this one and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from agent.acquire.hub import questions
from agent.acquire.hub.listing import Patience, list_files
from agent.acquire.hub.source import Source
from agent.acquire.terms import Brake, Failed, Stopped
from agent.variables import Secret
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts.ports import free_port, until

FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 100}
TOKEN = "hf_the_token_of_this_test"
SHORT = Patience(whole=timedelta(seconds=10), read=timedelta(seconds=5), tries=1, pause=timedelta(milliseconds=10))


@pytest.fixture
def hub() -> Iterator[Hub]:
    """With one repository."""
    with Hub() as made:
        made.repo("org/model", FILES)
        made.token(TOKEN)
        yield made


def source(hub: Hub, token: str = "") -> Source:
    """That Hub."""
    return Source(endpoint=hub.url, token=Secret(token) if token else None, ca_file=hub.ca_file)


def children() -> list[Path]:
    """The processes that this one started and that ask a Hub, by their folders in /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if b"agent.acquire.hub.inquiry" in words and int(parent) == os.getpid():
            found.append(process)
    return found


def test_a_listing_is_one_question_and_nothing_else_is_asked(hub: Hub) -> None:
    found = list_files(source(hub), "org/model", "main")
    assert [(f.path, f.size, bool(f.sha256), bool(f.git_sha1)) for f in found.files] == [
        ("config.json", 2, False, True),
        ("model.safetensors", 700, True, False),
    ]
    assert [request.path for request in hub.of()] == ["/api/models/org/model/revision/main?blobs=true"]


def test_a_commit_is_asked_for_and_not_taken_for_granted(hub: Hub) -> None:
    commit = hub.repositories["org/model"].sha
    assert list_files(source(hub), "org/model", commit).commit == commit
    with pytest.raises(Failed, match="no revision"):
        list_files(source(hub), "org/model", "0" * 40)
    assert len(hub.of("info")) == 2


def test_nothing_of_the_environment_reaches_the_library(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login x password hf_from_netrc\n")
    (tmp_path / "token").write_text("hf_from_a_file")
    nowhere = f"http://127.0.0.1:{free_port()}"
    for name, value in {
        "HF_TOKEN": "hf_from_the_environment",
        "HF_TOKEN_PATH": str(tmp_path / "token"),
        "HF_HUB_OFFLINE": "1",
        "HF_ENDPOINT": nowhere,
        "HTTP_PROXY": nowhere,
        "http_proxy": nowhere,
        "ALL_PROXY": nowhere,
        "NETRC": str(tmp_path / "netrc"),
        "HF_DEBUG": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert len(list_files(source(hub), "org/model", "main").files) == 2
    (request,) = hub.of()
    assert "authorization" not in request.headers


def test_nothing_is_written_that_stays(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    list_files(source(hub), "org/model", "main")
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_without_a_temporary_folder_nothing_is_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(Failed, match="temporary folder") as caught:
        list_files(source(hub), "org/model", "main", patience=SHORT)
    assert caught.value.code == "storage_error"
    assert hub.of() == []


def test_the_token_is_shown_to_the_hub_as_a_bearer(hub: Hub) -> None:
    list_files(source(hub, TOKEN), "org/model", "main")
    assert hub.of()[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_pulled_brake_ends_the_question_at_once_and_the_token_is_in_no_list_of_processes(hub: Hub) -> None:
    hub.fault("info", Fault(silent=True))
    brake, ended = Brake(), []

    def ask() -> None:
        try:
            list_files(source(hub, TOKEN), "org/model", "main", brake=brake)
        except Stopped as stopped:
            ended.append(stopped.why)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    until(lambda: hub.of("info"), "the question arrived")
    (child,) = children()
    shown = (child / "cmdline").read_bytes() + (child / "environ").read_bytes()
    assert TOKEN.encode() not in shown
    brake.pull("cancelled")
    thread.join(5)
    assert ended == ["cancelled"]
    assert children() == []


def test_an_answer_that_never_ends_is_given_up_in_time_and_leaves_no_process(hub: Hub) -> None:
    hub.fault("info", Fault(bytes_per_second=20))
    hasty = Patience(whole=timedelta(seconds=1.5), tries=1)
    with pytest.raises(Failed, match=r"within 1\.5 s"):
        list_files(source(hub), "org/model", "main", patience=hasty)
    assert children() == []


def test_a_pulled_brake_ends_the_pause_between_two_tries(hub: Hub) -> None:
    hub.fault("info", Fault(status=503))
    brake = Brake()
    patient = Patience(tries=2, pause=timedelta(minutes=10))

    def pull() -> None:
        until(lambda: hub.of("info") and not children(), "the first try is over")
        brake.pull("released")

    pulling = threading.Thread(target=pull)
    pulling.start()
    with pytest.raises(Stopped):
        list_files(source(hub), "org/model", "main", brake=brake, patience=patient)
    pulling.join()
    assert len(hub.of("info")) == 1


def test_a_process_that_dies_is_told_as_a_source_that_fails(hub: Hub) -> None:
    hub.fault("info", Fault(silent=True))

    def kill() -> None:
        until(lambda: hub.of("info"), "the question arrived")
        for child in children():
            os.kill(int(child.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(Failed) as caught:
        list_files(source(hub), "org/model", "main", patience=SHORT)
    killer.join()
    assert caught.value.code == "source_unavailable"


def test_a_private_ca_is_trusted_where_it_is_named(tmp_path: Path) -> None:
    with Hub(trustme.CA(), folder=tmp_path) as hub:
        hub.repo("org/model", FILES)
        assert len(list_files(source(hub), "org/model", "main").files) == 2


def test_a_certificate_of_an_unknown_ca_says_what_to_set(tmp_path: Path) -> None:
    with Hub(trustme.CA(), folder=tmp_path) as hub:
        hub.repo("org/model", FILES)
        with pytest.raises(Failed, match="MODELFORGE_AGENT_HUB_CA_CERT_PATH") as caught:
            list_files(Source(endpoint=hub.url), "org/model", "main", patience=SHORT)
    assert caught.value.code == "source_unavailable"
    assert "not trusted" in caught.value.detail


def test_an_unknown_host_says_what_to_check() -> None:
    with pytest.raises(Failed, match="HF_ENDPOINT") as caught:
        list_files(Source(endpoint="https://hub.invalid"), "org/model", "main", patience=SHORT)
    assert caught.value.code == "source_unavailable"


def test_the_sources_proxy_is_asked_and_not_for_what_needs_none(hub: Hub) -> None:
    through = Source(endpoint=hub.url, proxy=hub.elsewhere.url)
    with pytest.raises(Failed):
        list_files(through, "org/model", "main", patience=SHORT)
    assert len(hub.of("elsewhere")) == 1
    assert hub.of("info") == []
    around = Source(endpoint=hub.url, proxy=hub.elsewhere.url, no_proxy="127.0.0.1")
    assert len(list_files(around, "org/model", "main").files) == 2


def test_no_secret_of_the_way_is_told() -> None:
    proxy = f"http://user:the-proxys-password@127.0.0.1:{free_port()}"
    asked = Source(endpoint="https://hub.invalid", token=Secret(TOKEN), proxy=proxy)
    with pytest.raises(Failed) as caught:
        list_files(asked, "org/model", "main", patience=SHORT)
    assert "the-proxys-password" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_renamed_repository_is_found_by_its_old_name(hub: Hub) -> None:
    hub.renamed["org/old"] = "org/model"
    assert len(list_files(source(hub, TOKEN), "org/old", "main").files) == 2
    assert [request.headers["authorization"] for request in hub.of("info")] == [f"Bearer {TOKEN}"] * 2


@pytest.mark.parametrize(
    "revision", ["", "a b", "-x", "a..b", "a//b", "/a", "a/", "a\n", "a?b", "a\\b", "x" * 251], ids=repr
)
def test_a_revision_that_git_could_not_have_is_not_asked_for(hub: Hub, revision: str) -> None:
    with pytest.raises(Failed) as caught:
        list_files(source(hub), "org/model", revision)
    assert caught.value.code == "not_found"
    assert hub.of() == []


def test_what_asks_loads_no_second_library_for_http() -> None:
    said = "import sys, agent.acquire.hub.inquiry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", said], check=True, capture_output=True, text=True).stdout.split()
    assert "agent.acquire.hub.source" in loaded
    assert {"requests", "urllib3"}.isdisjoint(loaded)  # a fifth of the process's life went into loading them


def test_the_environment_of_the_question_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_HF_TOKEN", TOKEN)
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ssl/own.pem")
    made = questions.environment("/tmp/home")  # noqa: S108
    assert TOKEN not in made.values()
    assert made["HF_HOME"] == made["HOME"] == "/tmp/home"  # noqa: S108
    assert made["SSL_CERT_FILE"] == "/etc/ssl/own.pem"
