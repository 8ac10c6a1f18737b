"""Connections to the Hub and its CDN: kept, proven, through proxies, and never to where a Hub must not send us."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from agent.acquire.hub.reach import Reach
from agent.acquire.hub.source import Source, origin
from agent.acquire.line.faults import Fault
from agent.acquire.line.redirects import Desk
from agent.acquire.line.transport import Line, Way
from agent.acquire.line.watchdog import Watchdog
from agent.acquire.terms import Failed
from agent.variables import Secret
from tests.agent.acquire.fetching import LIMITS, Fetch, plan_of
from tests.agent.acquire.proxies import Proxy
from tests.hub.contents import weights
from tests.hub.faults import Fault as HubFault
from tests.hub.hub import Hub
from tests.hub.repositories import Files

FILES: Files = {"config.json": b"{}", "a.txt": b"a" * 1000, "model.safetensors": weights(300_000, seed=1)}
LOGIN = "user:s3cret-of-the-proxy"
TOKEN = "hf_token_of_this_test"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="The Office's Own CA")


@pytest.fixture
def secured(authority: trustme.CA, tmp_path: Path) -> Iterator[Hub]:
    with Hub(authority, folder=tmp_path) as made:
        yield made


@pytest.fixture
def proxy(authority: trustme.CA) -> Iterator[Callable[..., Proxy]]:
    made: list[Proxy] = []

    def start(*, encrypted: bool = False, status: int = 200) -> Proxy:
        context = None
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
        made.append(Proxy(context, status=status))
        return made[-1]

    yield start
    for one in made:
        one.close()


def way(hub: Hub, **more: object) -> Way:
    return Way(Source(endpoint=hub.url, ca_file=hub.ca_file, **more), LIMITS, Watchdog(LIMITS.stall))  # type: ignore[arg-type]


def test_small_files_come_over_kept_connections_and_without_a_head_request(hub: Hub, tmp_path: Path) -> None:
    fetch = Fetch(hub, hub.repo("org/m", {f"{n}.json": b"%d" % n for n in range(60)}), tmp_path)
    assert fetch.run() == "done"
    assert len(hub.of()) == 60
    assert {(request.method, request.range) for request in hub.of()} == {("GET", None)}
    assert len({request.connection for request in hub.of()}) <= LIMITS.connections


def test_a_kept_connection_that_the_server_ended_costs_no_try(hub: Hub) -> None:
    plan, shared = plan_of(hub.repo("org/m", FILES)), way(hub)
    desk = Desk(shared, plan)
    for _ in range(2 * LIMITS.tries):
        answer, _ = desk.ask(plan.files[0], None, None)
        answer.drain()
        hub.stop()
        hub.start()
    desk.close()
    assert len(hub.of("resolve")) == 2 * LIMITS.tries


def test_a_private_ca_is_believed_for_the_hub_and_its_cdn(secured: Hub, tmp_path: Path) -> None:
    fetch = Fetch(secured, secured.repo("org/m", FILES), tmp_path / "p")
    assert fetch.run() == "done"
    assert fetch.right


def test_an_unknown_ca_ends_at_once_with_the_variable_to_set(secured: Hub, tmp_path: Path) -> None:
    fetch = Fetch(secured, secured.repo("org/m", FILES), tmp_path / "p", source=Source(endpoint=secured.url))
    assert fetch.run() == "source_unavailable"
    assert "MODELFORGE_AGENT_HUB_CA_CERT_PATH" in fetch.failed.detail
    assert secured.of() == []


def test_a_hub_in_clear_is_asked_through_the_proxy_by_whole_addresses(
    hub: Hub, proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    through = proxy()
    source = Source(endpoint=hub.url, proxy=f"http://{LOGIN}@{through.address}")
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path, source=source)
    assert fetch.run() == "done"
    assert fetch.right
    assert all(
        head.startswith("GET http://127.0.0.1:") and "Proxy-Authorization: Basic" in head for head in through.heads
    )


@pytest.mark.parametrize("encrypted", [False, True], ids=["a proxy in clear", "a proxy with TLS of its own"])
def test_a_tunnel_through_the_proxy_is_end_to_end(
    secured: Hub, proxy: Callable[..., Proxy], tmp_path: Path, encrypted: bool
) -> None:
    """Field case 30, of the Hub."""
    through = proxy(encrypted=encrypted)
    scheme = "https" if encrypted else "http"
    token = Secret(secured.token(TOKEN))
    source = Source(
        endpoint=secured.url, token=token, ca_file=secured.ca_file, proxy=f"{scheme}://{LOGIN}@{through.address}"
    )
    fetch = Fetch(secured, secured.repo("org/m", FILES), tmp_path / "p", source=source)
    assert fetch.run() == "done"
    assert fetch.right
    assert {head.split()[1] for head in through.heads} == {
        f"127.0.0.1:{secured.hub.port}",
        f"127.0.0.1:{secured.cdn.port}",
    }
    assert TOKEN not in "".join(through.heads)
    assert not any("proxy-authorization" in request.headers for request in secured.of())


def test_hosts_that_the_proxy_is_not_for_are_asked_straight(
    hub: Hub, proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    through = proxy()
    source = Source(endpoint=hub.url, proxy=f"http://{through.address}", no_proxy="127.0.0.1")
    assert Fetch(hub, hub.repo("org/m", FILES), tmp_path, source=source).run() == "done"
    assert through.heads == []


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_says_no_is_told_without_its_password(
    secured: Hub, proxy: Callable[..., Proxy], tmp_path: Path, status: int
) -> None:
    source = Source(
        endpoint=secured.url, ca_file=secured.ca_file, proxy=f"http://{LOGIN}@{proxy(status=status).address}"
    )
    fetch = Fetch(secured, secured.repo("org/m", FILES), tmp_path / "p", source=source)
    assert fetch.run() == "source_unavailable"
    assert str(status) in fetch.failed.detail
    assert "s3cret" not in fetch.failed.detail


@pytest.mark.parametrize("hub_is", [Reach.PUBLIC, Reach.PRIVATE])
def test_a_hub_further_away_does_not_send_us_to_this_machine(hub: Hub, hub_is: Reach) -> None:
    shared = way(hub)
    shared.reach = hub_is
    with pytest.raises(Failed, match=r"redirects to 127\.0\.0\.1") as raised:
        Line(origin(hub.elsewhere.url), shared).ask(hub.elsewhere.url, {})
    assert raised.value.code == "source_unavailable"
    assert hub.of("elsewhere") == []


@pytest.mark.parametrize("hub_is", [Reach.PUBLIC, Reach.PRIVATE])
def test_nor_through_a_proxy(hub: Hub, proxy: Callable[..., Proxy], hub_is: Reach) -> None:
    through = proxy()
    shared = way(hub, proxy=f"http://{through.address}")
    shared.reach = hub_is
    with pytest.raises(Failed, match=r"redirects to 127\.0\.0\.1"):
        Line(origin(hub.elsewhere.url), shared).ask(hub.elsewhere.url, {})
    assert through.heads == []


def test_a_hub_on_this_machine_may_send_us_to_this_machine(hub: Hub) -> None:
    shared = way(hub)
    shared.reach = Reach.LOOPBACK
    assert Line(origin(hub.elsewhere.url), shared).ask(hub.elsewhere.url, {}).status == 404


def test_the_metadata_of_a_cloud_is_asked_by_nobody(hub: Hub, tmp_path: Path) -> None:
    hub.fault("resolve", HubFault(redirect="https://169.254.169.254/latest/meta-data"))
    fetch = Fetch(hub, hub.repo("org/m", FILES), tmp_path)
    assert fetch.run() == "source_unavailable"
    assert "169.254.169.254" in fetch.failed.detail
    assert "meta-data" not in fetch.failed.detail


def test_who_waits_for_the_head_of_an_answer_can_be_cut_off(hub: Hub) -> None:
    line = Line(origin(hub.url), way(hub))
    hub.fault(None, HubFault(meanwhile=lambda: line.cut(Fault("stalled", "cut off")), silent=True))
    with pytest.raises(Fault, match="cut off"):
        line.ask(hub.url, {})
    assert line.dead
