"""How far away an address is."""

import pytest

from agent.acquire.hub import reach
from agent.acquire.hub.listing import Patience, list_files
from agent.acquire.hub.reach import Reach
from agent.acquire.hub.source import Source
from agent.acquire.terms import Failed
from tests.hub.faults import Fault
from tests.hub.hub import Hub


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", Reach.PUBLIC),
        ("2606:4700::1111", Reach.PUBLIC),
        ("10.1.2.3", Reach.PRIVATE),
        ("172.16.0.1", Reach.PRIVATE),
        ("192.168.1.1", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),  # shared by a provider
        ("fd00::1", Reach.PRIVATE),
        ("127.0.0.1", Reach.LOOPBACK),
        ("127.9.9.9", Reach.LOOPBACK),
        ("::1", Reach.LOOPBACK),
        ("::ffff:127.0.0.1", Reach.LOOPBACK),
        ("::ffff:10.0.0.1", Reach.PRIVATE),
        ("2002:7f00:1::", Reach.LOOPBACK),  # 6to4 of 127.0.0.1
        ("169.254.169.254", Reach.SPECIAL),  # a cloud's metadata
        ("fe80::1%eth0", Reach.SPECIAL),
        ("0.0.0.0", Reach.SPECIAL),  # noqa: S104
        ("224.0.0.1", Reach.SPECIAL),
    ],
)
def test_an_address_is_public_private_of_this_machine_or_special(address: str, expected: Reach) -> None:
    assert reach.of(address) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", Reach.LOOPBACK),
        ("hub.localhost", Reach.LOOPBACK),
        ("10.0.0.1", Reach.PRIVATE),
        ("::1", Reach.LOOPBACK),
        ("cdn.example", Reach.PUBLIC),
    ],
)
def test_behind_a_proxy_only_the_name_can_be_judged(host: str, expected: Reach) -> None:
    assert reach.named(host) is expected


@pytest.mark.parametrize(
    ("hub", "target", "astray"),
    [
        ("https://8.8.8.8", "https://1.1.1.1/api", False),
        ("https://8.8.8.8", "https://10.0.0.1/api", True),
        ("https://8.8.8.8", "https://127.0.0.1:8443/api", True),
        ("https://8.8.8.8", "https://[::1]/api", True),
        ("https://10.0.0.2", "https://10.0.0.1/api", False),
        ("https://10.0.0.2", "https://8.8.8.8/api", False),
        ("https://10.0.0.2", "https://localhost/api", True),
        ("http://127.0.0.1:8200", "http://127.0.0.1:8201/api", False),
        ("http://127.0.0.1:8200", "https://169.254.169.254/latest", True),
        ("https://8.8.8.8", "https://nowhere.invalid/api", False),
    ],
)
def test_nobody_is_sent_nearer_to_this_house_than_the_hub_itself_lies(hub: str, target: str, astray: bool) -> None:
    assert reach.astray(target, Source(endpoint=hub)) is astray


def test_what_a_proxy_looks_up_is_judged_by_its_name() -> None:
    through = Source(endpoint="https://hub.example", proxy="http://10.0.0.1:3128")
    assert reach.astray("https://localhost/api", through)
    assert not reach.astray("https://cdn.example/api", through)


def test_a_listing_is_not_asked_for_where_the_hub_has_no_business(hub: Hub) -> None:
    hub.repo("org/model", {"config.json": b"{}"})
    hub.fault("info", Fault(redirect="https://169.254.169.254/latest/meta-data"))
    with pytest.raises(Failed, match="may not be asked") as failed:
        list_files(Source(endpoint=hub.url), "org/model", "main", patience=Patience(tries=1))
    assert failed.value.code == "source_unavailable"
