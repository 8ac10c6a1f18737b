"""A model arrives from a Hub with a private certificate, through a proxy: both of the agent's ways to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tests.agent.acquire.proxies import Proxy
from tests.hub import contents
from tests.hub.hub import Hub
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring

pytestmark = [pytest.mark.walk, pytest.mark.timeout(120)]
MIB = 1024 * 1024


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(trustme.CA(), folder=tmp_path) as made:
        yield made


def test_through_a_proxy_and_under_a_private_ca_the_listing_and_the_bytes_come(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(MIB, seed=1), gated="closed")
    token = hub.token("hf_the_token_of_this_walk", accepted=[repo.id])
    proxy = Proxy()
    variables = {
        "MODELFORGE_AGENT_HUB_CA_CERT_PATH": str(hub.ca_file),
        "MODELFORGE_AGENT_HUB_PROXY": f"http://user:s3cret@{proxy.address}",
        "MODELFORGE_HF_TOKEN": token,
    }
    one, root = acquiring.server(plane, agent, hub, **variables)
    acquiring.ended(plane, acquiring.order(plane, root, repo), one)
    proxy.close()
    acquiring.assert_published(one, repo, repo.sha)
    asked = {head.split(" ")[1] for head in proxy.heads}
    assert asked == {f"127.0.0.1:{hub.hub.port}", f"127.0.0.1:{hub.cdn.port}"}
    assert all(head.startswith("CONNECT ") and token not in head for head in proxy.heads)
    assert hub.strangers_saw(token) == []
    assert "s3cret" not in one.log + plane.log
    assert token not in one.log + plane.log


def test_a_hub_with_an_unknown_certificate_is_told_by_the_variable_that_mends_it(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(MIB, seed=2))
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    found = until(lambda: (now := acquiring.job(plane, job))["failure"] and now, f"it fails; {one.log[-1500:]}")
    assert isinstance(found, dict)
    assert (found["failure"]["code"], found["state"]) == ("source_unavailable", "queued")
    assert "MODELFORGE_AGENT_HUB_CA_CERT_PATH" in found["failure"]["detail"]
    assert hub.of() == []
