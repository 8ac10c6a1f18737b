"""From where agents can reach this control plane, by the address that it has."""

from urllib.parse import urlsplit

from django.conf import settings

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def only_from_here() -> bool:
    """Whether its address means its own machine: an agent starts by hand there, for from a container it would find
    nobody."""
    return urlsplit(settings.PUBLIC_URL).hostname in _LOOPBACK
