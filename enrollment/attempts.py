"""Guessing is slowed down: failed secrets are counted by address; whoever proves a good one is never held up."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Literal

import structlog
from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from agent.protocol import Code
from nodes.callers import Refused

log = structlog.get_logger(__name__)

Scope = Literal["enroll", "stranger", "login"]
"""``enroll``: enrollment tokens; ``stranger``: node credentials, the admin token and API keys; ``login``: passwords."""

_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NETWORK_BITS = 64  # of an IPv6 address: whoever has one address has its whole /64


def failed(scope: Scope, refused: Refused, *, address: str, handle: str, now: datetime) -> Refused:
    """Count a secret that was not known; the refusal to raise.

    The count's windows are fixed (a minute for ``30/minute``), in the cache that all web processes share.

    Args:
        scope: whose rate it is, of ``REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]``.
        refused: what the sender hears up to that rate.
        address: where it came from.
        handle: the secret's public part, for the log; "malformed" where there is none.
        now: the instant.

    Returns:
        ``refused``, or ``throttled`` with ``Retry-After`` once the address failed more often than its rate.
    """
    most, window = rate(scope)
    tries = count(scope, address=address, now=now)
    if tries <= most:
        log.warning("unknown secret refused", scope=scope, address=address, handle=handle, code=refused.code.value)
        return refused
    if tries == most + 1:
        log.warning("unknown secrets throttled", scope=scope, address=address, most=most, window_seconds=window)
    return Refused(
        Code.THROTTLED,
        "Too many unknown secrets came from this address. Check the secret, and wait as Retry-After says.",
        retry_after=_start(now, window) + timedelta(seconds=window) - now,
    )


def count(scope: Scope, *, address: str, now: datetime) -> int:
    """Count one failure; how many this address has in this window."""
    window = rate(scope)[1]
    return _count(_key(scope, address, now), window)


def wait(scope: Scope, *, address: str, now: datetime) -> timedelta | None:
    """How long an address that failed as often as its rate allows has to wait; None while it may try."""
    most, window = rate(scope)
    try:
        tries = int(cache.get(_key(scope, address, now), 0))
    except (RedisError, OSError) as fault:
        log.warning("failed attempts are not known", fault=str(fault))
        return None
    return _start(now, window) + timedelta(seconds=window) - now if tries >= most else None


def _start(now: datetime, window: int) -> datetime:
    return datetime.fromtimestamp(now.timestamp() // window * window, UTC)


def _key(scope: Scope, address: str, now: datetime) -> str:
    start = _start(now, rate(scope)[1])
    return f"attempts:{scope}:{network(address)}:{int(start.timestamp())}"


def rate(scope: Scope) -> tuple[int, int]:
    """How many failures in how many seconds."""
    rates: Any = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    most, _, period = rates[scope].partition("/")
    return int(most), _PERIODS[period[:1]]


def network(address: str) -> str:
    """Whom an address stands for: itself, or the /64 of an IPv6 address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(ip, IPv6Address):
        return str(ip_network((ip, NETWORK_BITS), strict=False).network_address)
    return str(ip)


def _count(key: str, window: int) -> int:
    """This failure's number in its window; 1 where the cache does not answer, for a refusal needs no cache."""
    try:
        cache.add(key, 0, timeout=2 * window)
        return int(cache.incr(key))
    except (RedisError, OSError, ValueError) as fault:
        log.warning("failed attempts are not counted", fault=str(fault))
        return 1
