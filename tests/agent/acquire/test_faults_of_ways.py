"""Hubs of other kinds: mirrors below a path, that serve all bytes themselves, with a private certificate."""

from pathlib import Path

import pytest
import trustme

from agent.acquire.hub.source import Source
from agent.acquire.terms import Failed
from agent.variables import Secret
from tests.agent.acquire.acquiring import FILES, REPO, bytes_of, lying_in
from tests.agent.acquire.attempts import Ordered
from tests.hub.hub import Hub

TOKEN = "hf_the_token_of_the_tests"


@pytest.mark.parametrize("direct", [False, True], ids=["with a CDN", "all by itself"])
def test_a_mirror_below_a_path_is_a_hub_like_any_other(tmp_path: Path, direct: bool) -> None:
    with Hub(prefix="/api/huggingfaceml/mirror") as hub:
        hub.direct = direct
        repo = hub.repo(REPO, FILES, gated="closed")
        hub.token(TOKEN, accepted=[REPO])
        job = Ordered(hub, tmp_path / "root", repo, source=Source(endpoint=hub.url, token=Secret(TOKEN)))
        job.root.mkdir()
        job.run()
        assert lying_in(job.published) == bytes_of(repo)
        assert bool(hub.of("cdn")) is not direct
        assert hub.strangers_saw(TOKEN) == []


def test_under_a_private_ca_both_the_listing_and_the_bytes_are_believed(tmp_path: Path) -> None:
    with Hub(trustme.CA(), folder=tmp_path) as hub:
        repo = hub.repo(REPO, FILES)
        job = Ordered(hub, tmp_path / "root", repo, source=Source(endpoint=hub.url, ca_file=hub.ca_file))
        job.root.mkdir()
        job.run()
        assert lying_in(job.published) == bytes_of(repo)


def test_a_cdn_with_another_certificate_than_the_hubs_gets_no_request(tmp_path: Path) -> None:
    """Somebody sits between the agent and the CDN."""
    with Hub(trustme.CA(), folder=tmp_path) as hub, Hub(trustme.CA()) as stranger:
        repo = hub.repo(REPO, FILES)
        hub.cdn = stranger.cdn
        job = Ordered(hub, tmp_path / "root", repo, source=Source(endpoint=hub.url, ca_file=hub.ca_file))
        job.root.mkdir()
        with pytest.raises(Failed) as failed:
            job.run()
        assert failed.value.code == "source_unavailable"
        assert stranger.of() == []
        assert not job.published.exists()


def test_from_a_hub_under_tls_no_redirect_leads_into_the_clear(tmp_path: Path) -> None:
    with Hub(trustme.CA(), folder=tmp_path) as hub, Hub() as clear:
        repo = hub.repo(REPO, FILES)
        hub.cdn = clear.cdn
        job = Ordered(hub, tmp_path / "root", repo, source=Source(endpoint=hub.url, ca_file=hub.ca_file))
        job.root.mkdir()
        with pytest.raises(Failed) as failed:
            job.run()
        assert failed.value.code == "source_unavailable"
        assert clear.of() == []
