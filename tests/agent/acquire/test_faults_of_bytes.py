"""Whatever goes wrong while bytes come in, the snapshot is published with the right ones or the failure says why."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.agent.acquire.acquiring import (
    BIG,
    BIG_BYTES,
    FILES,
    REPO,
    SMALL,
    Told,
    always,
    bytes_of,
    let_go_wrong,
    lying_in,
    once,
)
from tests.agent.acquire.attempts import LIMITS, Attempt
from tests.hub import contents
from tests.hub.contents import Given, weights
from tests.hub.faults import Fault, Request
from tests.hub.hub import Hub
from tests.hub.repositories import Gate

TOTAL = sum(contents.content(file).size for file in FILES.values())
IMPATIENT = replace(LIMITS, tries=2)


@dataclass(frozen=True)
class Case:
    """What goes wrong, and how it ends: ``published``, or the failure's code."""

    ends: str
    faults: tuple[Told, ...]
    token: str = ""
    gated: Gate = ""
    tries: int = LIMITS.tries


def early(request: Request) -> bool:
    """Asks for the beginning of a file."""
    return request.range is None or request.range[0] == 0


def late(request: Request) -> bool:
    """Asks for a later part of a file."""
    return request.range is not None and request.range[0] > 0


CASES: dict[str, Case] = {
    # The connection (ARTIFACTS.md section 3; field case 71).
    "cut in the middle, once": Case("published", (once("cdn", cut_at=100_000),)),
    "cut in the middle of every answer": Case("published", (always("cdn", cut_at=150_000),)),
    "cut before the first byte, for ever": Case("source_unavailable", (always("cdn", cut_at=0),)),
    "a small file cut once": Case("published", (once("resolve", file=SMALL, cut_at=5),)),
    "no answer at all, once": Case("published", (once("cdn", drop=True),)),
    "no answer at all, for ever": Case("source_unavailable", (always("cdn", drop=True),)),
    "silence, once": Case("published", (once("cdn", silent=True),)),
    "silence for ever": Case("stalled", (always("cdn", silent=True),), tries=2),
    "a stall in the middle, once": Case("published", (once("cdn", stall_at=100_000),)),
    "a stall for ever": Case("stalled", (always("cdn", when=late, stall_at=0),), tries=2),
    "a drip for ever": Case("stalled", (always("cdn", bytes_per_second=100),), tries=2),
    "a small file that drips": Case("stalled", (always("resolve", file="README.md", bytes_per_second=10),), tries=2),
    # What the servers say.
    "500 twice": Case("published", (once("cdn", times=2, status=500),)),
    "500 for ever": Case("source_unavailable", (always("cdn", status=500),)),
    "503 of the Hub, once": Case("published", (once("resolve", status=503),)),
    "503 of the Hub for ever": Case("source_unavailable", (always("resolve", status=503),)),
    "429 for a second": Case("published", (once("resolve", status=429, headers={"Retry-After": "1"}),)),
    "429 of the CDN for a second": Case("published", (once("cdn", status=429, headers={"Retry-After": "1"}),)),
    "429 for an hour": Case("rate_limited", (always("resolve", status=429, headers={"Retry-After": "3600"}),)),
    "429 told by RateLimit": Case("rate_limited", (always("cdn", status=429, headers={"RateLimit": '"r";r=0;t=300'}),)),
    "403 of the CDN, once": Case("published", (once("cdn", status=403),)),
    "403 of the CDN, for ever": Case("source_unavailable", (always("cdn", status=403),)),
    "404 of the CDN, once": Case("published", (once("cdn", status=404),)),
    "a file that the Hub lost": Case(
        "not_found", (always("resolve", file=SMALL, status=404, error_code="EntryNotFound"),)
    ),
    "416 in the middle, once": Case("published", (once("cdn", after=2, status=416),)),
    "416 for ever": Case("source_unavailable", (always("cdn", status=416),)),
    # Gated only where the bytes are (field case 66).
    "gated, no token": Case("gated_no_token", (), gated="listed"),
    "gated, token not accepted": Case("gated_not_accepted", (), gated="listed", token="good"),
    "gated, token accepted": Case("published", (), gated="listed", token="accepted"),
    "a token that was revoked meanwhile": Case("token_invalid", (), gated="listed", token="unknown"),
    # Ranges (field case 62).
    "ranges are ignored": Case("published", (always("cdn", ignore_range=True),)),
    "ranges are ignored once": Case("published", (once("cdn", after=2, ignore_range=True),)),
    "another range, once": Case("published", (once("cdn", when=late, content_range="bytes 7-{end}/{size}"),)),
    "another range for ever": Case("source_unavailable", (always("cdn", content_range="bytes 7-{end}/{size}"),)),
    "a total that is not the plan's": Case(
        "source_unavailable", (always("cdn", content_range="bytes {start}-{end}/9"),)
    ),
    "no Content-Range": Case("source_unavailable", (always("cdn", headers={"Content-Range": None}),)),
    "a Content-Range that is none": Case("source_unavailable", (always("cdn", content_range="all of it"),)),
    "bytes from elsewhere in the file, once": Case("published", (once("cdn", shift=17),)),
    "the file changes between two pieces, once": Case(
        "published", (once("cdn", after=2, headers={"ETag": '"other"'}),)
    ),
    # The bytes themselves (field case 63).
    "one wrong byte, once": Case("published", (once("cdn", file=BIG, when=early, flip=(200,)),)),
    "one wrong byte, for ever": Case("verification_failed", (always("cdn", file=BIG, flip=(BIG_BYTES - 1,)),)),
    "one wrong byte in a small file, once": Case("published", (once("resolve", file=SMALL, flip=(3,)),)),
    "one wrong byte in a small file, for ever": Case(
        "verification_failed", (always("resolve", file=SMALL, flip=(3,)),)
    ),
    "another file of the same size": Case(
        "verification_failed", (always("cdn", file=BIG, content=weights(BIG_BYTES, seed=9)),)
    ),
    "packed, once": Case("published", (once("cdn", gzip=True),)),
    "packed for ever": Case("source_unavailable", (always("cdn", gzip=True),)),
    "a packed small file": Case("source_unavailable", (always("resolve", file=SMALL, gzip=True),)),
    # Sizes.
    "shorter than planned": Case("source_unavailable", (always("cdn", file=BIG, size=BIG_BYTES - 1),)),
    "longer than planned": Case("source_unavailable", (always("cdn", file=BIG, size=BIG_BYTES + 1),)),
    "a small file shorter than planned": Case("source_unavailable", (always("resolve", file=SMALL, size=5),)),
    "a small file longer than planned": Case("source_unavailable", (always("resolve", file=SMALL, size=500),)),
    "without end": Case("source_unavailable", (always("cdn", ignore_range=True, chunked=True, size=2**40),)),
    "without a length, but right": Case("published", (always("cdn", ignore_range=True, chunked=True),)),
    "ranges without a length, but right": Case("published", (always("cdn", chunked=True),)),
    # Redirects.
    "to itself": Case("source_unavailable", (always("resolve", file=BIG, redirect="{path}"),)),
    "to nowhere": Case("source_unavailable", (always("resolve", file=BIG, redirect="http://"),)),
    "to a file of this machine": Case(
        "source_unavailable", (always("resolve", file=BIG, redirect="file:///etc/passwd"),)
    ),
    "to a host in clear": Case("source_unavailable", (always("resolve", file=BIG, redirect="http://192.0.2.1/x"),)),
    "to an address with a password": Case(
        "source_unavailable", (always("resolve", file=BIG, redirect="https://me:secret@192.0.2.1/x"),)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_right_bytes_are_published_or_none(hub: Hub, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    repo = hub.repo(REPO, FILES, gated=case.gated)
    hub.token("good")
    hub.token("accepted", accepted=[REPO])
    rules = let_go_wrong(hub, *case.faults)
    attempt = Attempt(hub, tmp_path / "root", repo, token=case.token, limits=replace(LIMITS, tries=case.tries))
    began = time.monotonic()
    assert attempt.run() == case.ends
    assert time.monotonic() - began < 20
    assert all(rule.hits for rule in rules)
    if case.ends == "published":
        assert lying_in(attempt.published) == bytes_of(repo)
        assert attempt.tally.bytes_done == TOTAL
        assert not attempt.partial.exists()
    else:
        assert attempt.failed.detail
        assert not attempt.published.exists()
        assert sum(path.stat().st_blocks * 512 for path in tmp_path.rglob("*") if path.is_file()) < 2 * TOTAL


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ends not in ("published", "not_found")])
def test_after_a_failure_the_next_attempt_publishes(hub: Hub, tmp_path: Path, name: str) -> None:
    """What the failed attempt left is gone on with, or thrown away, and never believed."""
    case = CASES[name]
    repo = hub.repo(REPO, FILES)
    let_go_wrong(hub, *case.faults)
    attempt = Attempt(hub, tmp_path / "root", repo, limits=IMPATIENT)
    attempt.run()
    hub.mend()
    assert attempt.run() == "published"
    assert lying_in(attempt.published) == bytes_of(repo)


def test_a_file_that_is_wrong_twice_lies_in_quarantine_with_what_was_expected_and_found(
    hub: Hub, tmp_path: Path
) -> None:
    repo = hub.repo(REPO, FILES)
    hub.fault("cdn", Fault(flip=(200,)), file=BIG)
    attempt = Attempt(hub, tmp_path / "root", repo)
    assert attempt.run() == "verification_failed"
    (file,) = attempt.quarantined
    wrong = bytearray(contents.read(repo.files()[BIG].content))
    wrong[200] ^= 0xFF
    found = contents.sha256(Given(bytes(wrong)))
    assert (file.path, file.size_bytes) == (BIG, BIG_BYTES)
    assert (file.expected, file.found, file.kept) == (repo.files()[BIG].sha256, found, True)
    assert (tmp_path / "quarantine" / file.location).read_bytes() == bytes(wrong)
    assert not any(path.name.startswith(BIG) for path in (tmp_path / "root").rglob("*"))


BOMB = Fault(gzip=True, ignore_range=True, content=Given(bytes(20_000_000)))
ENDLESS = Fault(ignore_range=True, chunked=True, size=2**40)


@pytest.mark.parametrize("fault", [BOMB, ENDLESS], ids=["bomb", "endless"])
def test_no_more_is_read_than_was_planned(hub: Hub, tmp_path: Path, fault: Fault) -> None:
    """The library wrote 298 MiB where the listing said 2 bytes."""
    repo = hub.repo(REPO, {"model.safetensors": weights(10_000, seed=1)})
    hub.fault("cdn", fault)
    assert Attempt(hub, tmp_path / "root", repo).run() == "source_unavailable"
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.part")) <= 10_000
    assert hub.sent() < 20_000_000


def test_nothing_but_plain_bytes_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    assert Attempt(hub, tmp_path / "root", repo).run() == "published"
    assert {request.headers.get("accept-encoding") for request in hub.of("resolve", "cdn")} == {"identity"}
