"""Where the control plane is reached: its address for browsers and agents, and the host names that it serves."""

import ipaddress
import re
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

_NAME = re.compile(r"[\w-][\w.-]*")
_ADDRESS = re.compile(r"https?://(?P<host>\[[^\]]*\]|[^:/]+)(:(?P<port>[0-9]{1,5}))?(/[^\s?#@\"'<>\\]*)?")


def public_url(name: str, text: str) -> str:
    """The address that variable ``name`` says, without a slash at its end.

    Raises:
        ImproperlyConfigured: it is none. Somebody may have put a password into it, so no part of it is shown.
    """
    found = _ADDRESS.fullmatch(text.rstrip("/"))
    if not found or not _is_host(found["host"]) or not 0 < int(found["port"] or 443) <= 65535:
        raise ImproperlyConfigured(
            f"{name} is no address that a browser opens; say https://modelforge.example, or http://10.0.0.5:8000, "
            "without a user, a question mark or quotation marks."
        )
    return found[0]


def hosts(name: str, said: Sequence[str]) -> list[str]:
    """The host names that variable ``name`` says: ``*`` is any, and one with a dot before it means those below it too.

    Raises:
        ImproperlyConfigured: one of them is none, or there is none.
    """
    for place, host in enumerate(said, 1):
        if host != "*" and not _is_host(host.removeprefix(".")):
            raise ImproperlyConfigured(
                f"{name} has no host name in place {place}; say names by comma, without http:// and without a port, "
                "such as modelforge.example,10.0.0.5,[::1]."
            )
    if not said:
        raise ImproperlyConfigured(f"{name} holds no name; say names by comma, such as modelforge.example,10.0.0.5.")
    return list(said)


def _is_host(text: str) -> bool:
    """A name, an IPv4 address, or an IPv6 address in brackets."""
    if not text.startswith("["):
        return bool(_NAME.fullmatch(text))
    try:
        return text.endswith("]") and bool(ipaddress.IPv6Address(text[1:-1]))
    except ValueError:
        return False
