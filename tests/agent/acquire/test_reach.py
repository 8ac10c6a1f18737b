"""How far away an address is."""

import pytest

from agent.acquire import reach
from agent.acquire.reach import Reach


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
