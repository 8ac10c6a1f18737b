"""The Hub's token and the addresses that it signs: who sees them, whatever goes wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.acquire.acquiring import FILES, REPO, Told, always, let_go_wrong
from tests.agent.acquire.attempts import LIMITS, Attempt
from tests.hub.faults import Fault
from tests.hub.hub import Hub

TOKEN = "hf_the_token_of_the_tests"
IMPATIENT = replace(LIMITS, tries=2)
FAULTS: dict[str, tuple[str, Told]] = {
    "403 of the CDN": ("source_unavailable", always("cdn", status=403)),
    "500": ("source_unavailable", always("cdn", status=500)),
    "silence": ("stalled", always("cdn", silent=True)),
    "packed": ("source_unavailable", always("cdn", gzip=True)),
    "a redirect to nowhere": ("source_unavailable", always("resolve", redirect="http://")),
}


def test_the_token_is_shown_to_the_hub_and_to_nobody_else(hub: Hub, tmp_path: Path) -> None:
    """Field case 73."""
    repo = hub.repo(REPO, FILES, gated="closed")
    hub.token(TOKEN, accepted=[REPO])
    attempt = Attempt(hub, tmp_path / "root", repo, token=TOKEN)
    assert attempt.run() == "published"
    assert all(request.headers["authorization"] == f"Bearer {TOKEN}" for request in hub.of("resolve"))
    assert hub.of("cdn")
    assert hub.strangers_saw(TOKEN) == []


def test_the_token_does_not_follow_a_redirect_to_another_host(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    hub.token(TOKEN)
    hub.fault("resolve", Fault(redirect=f"{hub.elsewhere.url}{{path}}"))
    attempt = Attempt(hub, tmp_path / "root", repo, token=TOKEN)
    assert attempt.run() == "source_unavailable"
    assert hub.of("elsewhere")
    assert hub.strangers_saw(TOKEN) == []


def test_a_renamed_repository_is_fetched_by_its_old_name(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo("new/name", FILES, gated="closed")
    hub.token(TOKEN, accepted=["new/name"])
    hub.renamed[REPO] = "new/name"
    attempt = Attempt(hub, tmp_path / "root", repo, token=TOKEN)
    repo.id = REPO
    assert attempt.run() == "published"


@pytest.mark.parametrize("name", FAULTS)
def test_no_failure_quotes_a_signed_address_or_the_token(hub: Hub, tmp_path: Path, name: str) -> None:
    repo = hub.repo(REPO, FILES)
    hub.token(TOKEN)
    let_go_wrong(hub, FAULTS[name][1])
    attempt = Attempt(hub, tmp_path / "root", repo, token=TOKEN, limits=IMPATIENT)
    assert attempt.run() == FAULTS[name][0]
    said = f"{attempt.failed!r} {attempt.failed.told()} {attempt.failed.__cause__!r}"
    assert TOKEN not in said
    assert "Signature" not in said
    assert "signed-" not in said


def test_no_signed_address_and_no_token_is_written_to_the_disk(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    hub.token(TOKEN)
    hub.fault("cdn", Fault(stall_at=0), when=lambda request: request.range is not None and request.range[0] > 0)
    attempt = Attempt(hub, tmp_path / "root", repo, token=TOKEN, limits=IMPATIENT)
    assert attempt.run() == "stalled"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".part")
    assert written
    assert b"signed-" not in written
    assert TOKEN.encode() not in written
