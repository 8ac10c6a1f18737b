"""The address of Redis: what both of its readers understand is kept, and of what one does not, no part is shown."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection
from redis.connection import ConnectionPool

from modelforge.brokers import parse

NAME = "MODELFORGE_REDIS_URL"


@pytest.mark.parametrize(
    "url",
    [
        '"redis://:topsecretpw@h/0"',
        "//:topsecretpw@h/0",
        ":topsecretpw@h/0",
        "http://:topsecretpw@h/0",
        "unix://:topsecretpw@/run/redis",
        "redis://:topsecretpw@h:abc/0",
        "redis://:topsecretpw@h:99999/0",
        "redis://:topsecretpw@[::1/0",
        "redis://:topsecretpw@h h/0",
        "redis://:topsecretpw@h/cache",
        "redis://:topsec/retpw@h/0",
        "redis://:topsec?retpw@h/0",
        "redis://:topsec#retpw@h/0",
        "redis://:topsec,retpw@h/0",
        "redis://:topsec;retpw@h/0",
        "redis://:12/retpw@h/0",
        "redis://:12?retpw@h/0",
        "redis://:12?retpw=1@h/0",
        "redis://:12#retpw@h/0",
        "redis://:topsecretpw@h/0;",
        "redis://:topsecretpw@h/0?ssl_cert_reqs=none",
        "rediss://:topsecretpw@h/0?ssl_cert_reqs=CERT_NONE",
        "rediss://:topsecretpw@h/0?ssl_cert_reqs",
    ],
)
def test_no_part_of_a_wrong_address_is_shown(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{NAME} is no address of Redis; say redis://") as fault:
        parse(NAME, url)
    assert "percent-encode the password" in str(fault.value)
    assert not [part for part in ("topsec", "retpw") if part in str(fault.value)]
    assert fault.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "redis://redis:6379/0",
        "redis://127.0.0.1",
        "redis://",
        "redis://h/",
        "redis://[::1]:6379/15",
        "redis://user:p%2Fw%3F%23%40@h:6379/0",
        "redis://:p@w@h/0",
        "rediss://:p@h:6380/0?ssl_cert_reqs=required&ssl_ca_certs=/ca.pem",
        "redis://a:6379/0;redis://b:6379/0",
    ],
)
def test_an_address_that_both_readers_understand_is_kept(url: str) -> None:
    assert parse(NAME, url) == url
    for part in url.split(";"):
        ConnectionPool.from_url(part).make_connection()
    assert Connection(url).hostname in (None, "redis", "127.0.0.1", "h", "::1", "a")
