"""How often a caller may ask: by credential or person, so that a fleet behind one address is not throttled by it."""

import time
from typing import TYPE_CHECKING

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from nodes.callers import Caller, address_of

if TYPE_CHECKING:  # rest_framework.views reads the settings that name this module
    from rest_framework.views import APIView

log = structlog.get_logger(__name__)

_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class CallerThrottle(BaseThrottle):
    """One budget per caller, counted in fixed windows; where the cache does not answer, nobody is held up."""

    scope = "caller"
    _left: float | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Count this request; False once the window's budget is spent."""
        most, window = rate(str(api_settings.DEFAULT_THROTTLE_RATES[self.scope]))
        now = time.time()
        start = int(now // window * window)
        self._left = start + window - now
        return count(f"throttle:{who(request)}:{start}", 2 * window) <= most

    def wait(self) -> float | None:
        """Seconds until the next window."""
        return self._left


def who(request: Request) -> str:
    """The one who asks: a credential, a person, or an address where neither is known."""
    if isinstance(request.auth, Caller):
        return f"{request.auth.kind}:{request.auth.id}"
    if request.user and request.user.is_authenticated:
        return f"person:{request.user.pk}"
    return f"address:{address_of(request)}"


def rate(text: str) -> tuple[int, int]:
    """``1200/minute`` as how many in how many seconds."""
    most, _, period = text.partition("/")
    return int(most), _PERIODS[period[:1]]


def count(key: str, lifetime: int) -> int:
    """Which one in its window this is; 0 where the cache does not answer."""
    try:
        cache.add(key, 0, timeout=lifetime)
        return int(cache.incr(key))
    except (RedisError, OSError, ValueError) as fault:
        log.warning("requests are not counted", fault=str(fault))
        return 0
