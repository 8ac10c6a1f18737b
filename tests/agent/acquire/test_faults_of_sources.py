"""A source that asks to wait, forgets an address, or goes away is asked again, and little comes twice."""

from pathlib import Path

import pytest

from tests.agent.acquire.acquiring import (
    BIG,
    BIG_BYTES,
    FILES,
    REPO,
    bytes_of,
    lying_in,
)
from tests.agent.acquire.attempts import LIMITS, Attempt
from tests.hub import contents
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub

TOTAL = sum(contents.content(file).size for file in FILES.values())


@pytest.mark.parametrize("kind", ["cdn", "resolve"])
def test_a_429_without_end_says_how_long_to_wait(hub: Hub, tmp_path: Path, kind: str) -> None:
    """Field case 65."""
    repo = hub.repo(REPO, FILES)
    hub.fault(kind, Fault(status=429, headers={"Retry-After": "3600"}))  # type: ignore[arg-type]
    attempt = Attempt(hub, tmp_path / "root", repo)
    assert attempt.run() == "rate_limited"
    assert attempt.failed.retry_after is not None
    assert attempt.failed.retry_after.total_seconds() == 3600


def test_a_429_holds_all_connections(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, {f"{n}.safetensors": weights(300_000, seed=n) for n in range(8)})
    hub.fault("resolve", Fault(status=429, headers={"Retry-After": "1"}), times=1)
    attempt = Attempt(hub, tmp_path / "root", repo)
    assert attempt.run() == "published"
    (held,) = [request for request in hub.of("resolve") if request.status == 429]
    started = [request.at - held.at for request in hub.of("resolve") if request is not held]
    assert not [seconds for seconds in started if 0.2 < seconds < 0.9]


@pytest.mark.parametrize("how", ["after three requests each", "all at once, in the middle"])
def test_an_address_that_expires_is_asked_for_again(hub: Hub, tmp_path: Path, how: str) -> None:
    repo = hub.repo(REPO, FILES)
    if how == "after three requests each":
        hub.links.live_uses = 3
    else:
        hub.fault("cdn", Fault(meanwhile=hub.links.expire), after=4, times=1)
    attempt = Attempt(hub, tmp_path / "root", repo)
    assert attempt.run() == "published"
    assert len(hub.of("resolve", file=BIG)) > 1
    assert hub.sent(BIG) - BIG_BYTES <= LIMITS.connections * LIMITS.segment_bytes


def test_what_was_cut_off_costs_no_more_than_what_was_on_its_way(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    hub.fault("cdn", Fault(cut_at=200_000), times=3)
    assert Attempt(hub, tmp_path / "root", repo).run() == "published"
    assert hub.sent() - TOTAL <= 3 * LIMITS.chunk_bytes


def test_nobody_is_there(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    hub.stop()
    assert Attempt(hub, tmp_path / "root", repo).run() == "source_unavailable"


def test_the_hub_goes_away_in_the_middle_and_comes_back(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    hub.fault("cdn", Fault(meanwhile=hub.stop), after=5, times=1)
    attempt = Attempt(hub, tmp_path / "root", repo)
    assert attempt.run() == "source_unavailable"
    hub.mend()
    sent = hub.sent()
    hub.start()
    assert attempt.run() == "published"
    assert hub.sent() - sent <= TOTAL - sent + LIMITS.connections * LIMITS.segment_bytes
    assert lying_in(attempt.published) == bytes_of(repo)
