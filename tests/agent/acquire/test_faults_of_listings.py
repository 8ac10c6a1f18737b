"""Whatever goes wrong when the Hub is asked what a repository holds ends in the failure that names it, and in time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agent.acquire.hub.listing import Listing, Patience, list_files
from agent.acquire.hub.source import Source
from agent.acquire.terms import Brake, Failed, Stopped
from agent.variables import Secret
from tests.agent.acquire.acquiring import FILES, REPO, Told, always, let_go_wrong, once
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.hub.repositories import Gate

PATIENCE = Patience(
    whole=timedelta(seconds=30),
    read=timedelta(seconds=10),
    tries=2,
    pause=timedelta(milliseconds=20),
    most_bytes=100_000,
)
SHORT = replace(PATIENCE, whole=timedelta(seconds=2), read=timedelta(seconds=1))
TOKEN = "hf_the_token_of_the_tests"


@dataclass(frozen=True)
class Case:
    """What is wrong, and the failure's code; "" where the listing must come all the same."""

    ends: str
    faults: tuple[Told, ...] = ()
    token: str = ""  # none, "good" (known to the Hub, accepted nowhere), "accepted", or "unknown"
    gated: Gate = ""
    private: bool = False
    ask: dict[str, str] = field(default_factory=dict)  # another repository or revision
    patience: Patience = PATIENCE


def siblings(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], Any]:
    """The listing with its large file told otherwise."""

    def edit(told: Any) -> Any:
        for row in told["siblings"]:
            if "lfs" in row:
                change(row)
        return told

    return edit


def without(*names: str) -> Callable[[Any], Any]:
    return lambda told: {name: value for name, value in told.items() if name not in names}


CASES: dict[str, Case] = {
    # Who may, and what exists (field case 66).
    "gated, no token": Case("gated_no_token", gated="closed"),
    "gated, listed with masked digests, no token": Case("gated_no_token", gated="listed"),
    "gated, token not accepted": Case("gated_not_accepted", gated="closed", token="good"),
    "gated, listed with masked digests, token not accepted": Case("gated_not_accepted", gated="listed", token="good"),
    "gated, token accepted": Case("", gated="closed", token="accepted"),
    "gated, unknown token": Case("token_invalid", gated="closed", token="unknown"),
    "open, unknown token": Case("token_invalid", token="unknown"),
    "private, no token": Case("not_found", private=True),
    "private, token of another account": Case("not_found", private=True, token="good"),
    "private, token accepted": Case("", private=True, token="accepted"),
    "no such repository, no token": Case("not_found", ask={"repo_id": "org/none"}),
    "no such repository, good token": Case("not_found", ask={"repo_id": "org/none"}, token="good"),
    "no such branch": Case("not_found", ask={"revision": "nightly"}),
    "no such commit": Case("not_found", ask={"revision": "0" * 40}),
    "a revision that would bend the address": Case("not_found", ask={"revision": "../../../secrets"}),
    "disabled by the Hub": Case(
        "not_found", (always("info", status=403, error_message="Access to this resource is disabled."),)
    ),
    # Too many requests (field case 65).
    "429 with a long Retry-After": Case("rate_limited", (always("info", status=429, headers={"Retry-After": "600"}),)),
    "429 with only a RateLimit header": Case(
        "rate_limited", (always("info", status=429, headers={"RateLimit": '"api";r=0;t=600'}),)
    ),
    # A Hub that is ill (field case 64).
    "500 once": Case("", (once("info", status=500),)),
    "500 for ever": Case("source_unavailable", (always("info", status=500),)),
    "503 with a page": Case("source_unavailable", (always("info", status=503, body=b"<html>Sorry</html>"),)),
    "the connection ends once": Case("", (once("info", drop=True),)),
    "the connection ends for ever": Case("source_unavailable", (always("info", drop=True),)),
    "no answer": Case("source_unavailable", (always("info", silent=True),), patience=SHORT),
    "an answer that drips": Case("source_unavailable", (always("info", bytes_per_second=60),), patience=SHORT),
    "an answer that stops": Case("source_unavailable", (always("info", stall_at=100),), patience=SHORT),
    "an answer cut short": Case("source_unavailable", (always("info", cut_at=100),)),
    # An answer that is none.
    "a login page": Case("source_unavailable", (always("info", body=b"<html>Log in to the guest network</html>"),)),
    "half of the JSON": Case("source_unavailable", (always("info", body=b'{"id": "org/model", "siblings": ['),)),
    "JSON, but a list": Case("manifest_refused", (always("info", edit=lambda _: []),)),
    "JSON, but null": Case("manifest_refused", (always("info", edit=lambda _: None),)),
    "no commit": Case("manifest_refused", (always("info", edit=without("sha")),)),
    "a branch in place of the commit": Case("manifest_refused", (always("info", edit=lambda t: t | {"sha": "main"}),)),
    "another commit than was asked for": Case(
        "manifest_refused", (always("info", edit=lambda t: t | {"sha": "f" * 40}),), ask={"revision": "this commit"}
    ),
    "no size": Case("manifest_refused", (always("info", edit=siblings(lambda row: row["lfs"].pop("size"))),)),
    "a size below zero": Case("manifest_refused", (always("info", edit=siblings(lambda r: r["lfs"].update(size=-1))),)),
    "a size that is no number": Case(
        "manifest_refused", (always("info", edit=siblings(lambda r: r["lfs"].update(size="many"))),)
    ),
    "no digest": Case("manifest_refused", (always("info", edit=siblings(lambda row: row["lfs"].pop("sha256"))),)),
    "a digest that is none": Case(
        "manifest_refused", (always("info", edit=siblings(lambda row: row["lfs"].update(sha256="../../x"))),)
    ),
    "an answer without end": Case("manifest_refused", (always("info", body=b"[" + b"0," * 200_000),)),
    "a packed answer": Case("manifest_refused", (always("info", gzip=True),)),
    # Away from the Hub.
    "a redirect to a host that is not asked in clear": Case(
        "source_unavailable", (always("info", redirect="http://192.0.2.1/api"),)
    ),
    "a redirect to itself": Case("source_unavailable", (always("info", redirect="{path}"),)),
}


def source(hub: Hub, token: str = "") -> Source:
    return Source(endpoint=hub.url, token=Secret(token) if token else None)


def ask(hub: Hub, case: Case) -> Listing:
    repo = hub.repo(REPO, FILES, gated=case.gated, private=case.private)
    hub.token("good")
    hub.token("accepted", accepted=[REPO])
    let_go_wrong(hub, *case.faults)
    wanted = {"repo_id": REPO, "revision": "main"} | case.ask
    if wanted["revision"] == "this commit":
        wanted["revision"] = repo.sha
    return list_files(source(hub, case.token), wanted["repo_id"], wanted["revision"], patience=case.patience)


@pytest.mark.parametrize("name", CASES)
def test_a_listing_comes_whole_or_fails_by_its_name(hub: Hub, name: str) -> None:
    case = CASES[name]
    began = time.monotonic()
    if not case.ends:
        assert {file.path for file in ask(hub, case).files} == set(FILES)
        return
    with pytest.raises(Failed) as failed:
        ask(hub, case)
    assert (failed.value.code, failed.value.detail != "") == (case.ends, True)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "600"}, {"RateLimit": '"api";r=0;t=600'}, {"RateLimit": '"api";r=0;t=600', "Retry-After": "600"}],
    ids=["Retry-After", "RateLimit", "both"],
)
def test_how_long_to_wait_is_told_on(hub: Hub, headers: dict[str, str]) -> None:
    with pytest.raises(Failed) as failed:
        ask(hub, Case("", (always("info", status=429, headers=headers),)))
    assert failed.value.retry_after == timedelta(seconds=600)


def test_a_date_to_wait_for_is_told_on_as_what_is_left_until_then(hub: Hub) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    with pytest.raises(Failed) as failed:
        ask(hub, Case("", (always("info", status=429, headers={"Retry-After": until}),)))
    assert failed.value.retry_after is not None
    assert timedelta(seconds=580) < failed.value.retry_after <= timedelta(seconds=600)


def test_the_branch_is_asked_for_as_it_is_spelled(hub: Hub) -> None:
    repo = hub.repo(REPO, FILES)
    pr = repo.commit({"config.json": b"{}"}, ref="refs/pr/1")
    assert list_files(source(hub), REPO, "refs/pr/1", patience=PATIENCE).commit == pr
    assert hub.of("info")[0].path.startswith(f"/api/models/{REPO}/revision/refs%2Fpr%2F1?")


def test_the_token_goes_to_the_hub_and_not_where_a_redirect_leads(hub: Hub) -> None:
    hub.repo(REPO, FILES)
    hub.token(TOKEN)
    hub.fault("info", Fault(redirect=f"{hub.elsewhere.url}/api/models/{REPO}"))
    with pytest.raises(Failed):
        list_files(source(hub, TOKEN), REPO, "main", patience=PATIENCE)
    assert hub.of("info")[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert hub.of("elsewhere")
    assert hub.strangers_saw(TOKEN) == []


def test_a_page_that_says_to_read_on_elsewhere_does_not_get_the_token(hub: Hub) -> None:
    hub.repo(REPO, FILES)
    hub.token(TOKEN)
    hub.fault("info", Fault(headers={"Link": f'<{hub.elsewhere.url}/next>; rel="next"'}))
    assert len(list_files(source(hub, TOKEN), REPO, "main", patience=PATIENCE).files) == len(FILES)
    assert hub.of("elsewhere") == []


@pytest.mark.parametrize(
    "name", ["open, unknown token", "gated, token not accepted", "500 for ever", "half of the JSON"]
)
def test_no_failure_quotes_the_token(hub: Hub, name: str) -> None:
    case = CASES[name]
    hub.token(TOKEN)
    hub.repo(REPO, FILES, gated=case.gated)
    let_go_wrong(hub, *case.faults)
    secret = TOKEN if case.token != "unknown" else f"{TOKEN}_no_more"
    with pytest.raises(Failed) as failed:
        list_files(source(hub, secret), REPO, "main", patience=PATIENCE)
    assert failed.value.code == case.ends
    assert TOKEN not in f"{failed.value!r} {failed.value} {failed.value.told()}"


def test_what_the_environment_says_to_the_library_does_not_count(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repo(REPO, FILES)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert len(list_files(source(hub), REPO, "main", patience=PATIENCE).files) == len(FILES)
    assert all("authorization" not in request.headers for request in hub.of())


def test_nobody_is_there(hub: Hub) -> None:
    hub.stop()
    with pytest.raises(Failed) as failed:
        list_files(source(hub), REPO, "main", patience=PATIENCE)
    assert failed.value.code == "source_unavailable"


def test_a_cancelled_job_does_not_wait_for_a_silent_hub(hub: Hub) -> None:
    hub.fault("info", Fault(silent=True))
    brake = Brake()
    began = time.monotonic()
    brake.pull("cancelled")
    with pytest.raises(Stopped):
        list_files(source(hub), REPO, "main", brake=brake, patience=Patience())
    assert time.monotonic() - began < 5
