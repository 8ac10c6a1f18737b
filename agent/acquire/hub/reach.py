"""How far away an address is: a Hub on the internet must not send us to a machine of this house, or to this one."""

import ipaddress
import socket
from enum import IntEnum

from agent.acquire.hub.source import Source, origin
from agent.addresses import is_loopback


class Reach(IntEnum):
    """From anywhere to nowhere else; a redirect may lead to the Hub's own kind or to a more public one."""

    PUBLIC = 0
    PRIVATE = 1  # this house: RFC 1918, unique local, shared by a provider
    LOOPBACK = 2  # this machine
    SPECIAL = 3  # link-local (a cloud's metadata), multicast, unspecified


def of(address: str) -> Reach:
    """The reach of a numeric address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found.sixtofour or found
    if found.is_loopback:
        return Reach.LOOPBACK
    if found.is_link_local or found.is_multicast or found.is_unspecified:
        return Reach.SPECIAL
    return Reach.PUBLIC if found.is_global else Reach.PRIVATE


def named(host: str) -> Reach:
    """What a host's name alone tells, where somebody else (a proxy) looks it up."""
    if is_loopback(host):
        return Reach.LOOPBACK
    try:
        return of(host)
    except ValueError:
        return Reach.PUBLIC


def astray(url: str, source: Source) -> bool:
    """Whether an address lies nearer to this house than the Hub that sends us there. One that is not known does not."""
    try:
        return _at(url, source) > _at(source.endpoint, source)
    except OSError:
        return False


def _at(url: str, source: Source) -> Reach:
    """The nearest of all that a name means now."""
    _, host, port = origin(url)
    if source.proxy_for(url) is not None:
        return named(host)
    return max(of(str(address[0])) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
