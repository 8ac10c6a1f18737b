"""How often a caller may ask: by credential or person, so that a fleet behind one address is not throttled by it."""

from rest_framework.throttling import SimpleRateThrottle


class CallerThrottle(SimpleRateThrottle):
    """One budget per caller."""

    scope = "caller"

    def get_cache_key(self, request, view):  # type: ignore[no-untyped-def]
        """The caller's key."""
        return
