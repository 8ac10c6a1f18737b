"""What the environment says about an address outside: whether it is this machine, which proxy leads there, whose CA."""

import ipaddress
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agent.variables import Variables


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def ca_file(read: Variables, name: str) -> Path | None:
    """The PEM file that variable ``name`` names; None where it is unset."""
    value = read.text(name, longest=4096)
    if not value:
        return None
    try:
        ssl.create_default_context(cafile=value)
    except ssl.SSLError:
        read.fault(name, f"names a file without a PEM certificate (-----BEGIN CERTIFICATE-----): {value}.")
    except OSError as error:
        text = f"names a file that cannot be read ({error.strerror}): {value}. Mend its path, mount or rights."
        read.fault(name, text)
    return Path(value)


def proxy(read: Variables, environ: Mapping[str, str], url: str, own_name: str) -> str | None:
    """The proxy of variable ``own_name``, else the environment's as requests reads it (never for loopback)."""
    own = read.text(own_name, longest=2048)
    name, found = own_name, own
    if own.lower() in ("none", "direct"):
        return None
    if not own:
        name, found = _of_environment(environ, url)
    if not found:
        return None
    found = found if "://" in found else f"http://{found}"
    try:
        parts = urlsplit(found)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        # What stands behind the host may be the rest of a password, and what stands before it the beginning.
        usable = usable and parts.path in ("", "/") and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        form = "must be an HTTP proxy, such as http://proxy.example:3128 (SOCKS is not spoken)"
        read.fault(name, f"{form}; percent-encode a password (/ is %2F, ? is %3F, # is %23, @ is %40).")
        return None
    return found


def no_proxy(environ: Mapping[str, str]) -> str:
    """The hosts that the environment's proxy is not for, by comma."""
    return environ.get("no_proxy") or environ.get("NO_PROXY") or ""


def goes_straight(url: str, no_proxy: str) -> bool:
    """Whether ``url`` is of a host that NO_PROXY names, as requests reads it."""
    # Not at the top: the process that asks the Hub lives for a quarter of a second, of which this took a fifth.
    from requests.utils import should_bypass_proxies  # noqa: PLC0415

    return should_bypass_proxies(url, no_proxy=no_proxy)


def _of_environment(environ: Mapping[str, str], url: str) -> tuple[str, str]:
    """The variable that names a proxy for ``url``, and what it says."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname or "") or goes_straight(url, no_proxy(environ)):
        return "", ""
    for name in (f"{parts.scheme}_proxy", f"{parts.scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"):
        found = environ.get(name, "").strip()
        if found:
            return name, found
    return "", ""
