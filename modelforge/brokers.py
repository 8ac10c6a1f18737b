"""The address of Redis, as both of its readers (Celery and Django's cache) understand it; no part of it is shown."""

import re
from urllib.parse import parse_qsl, urlsplit

from django.core.exceptions import ImproperlyConfigured

_SCHEME = re.compile("rediss?://")
_NUMBER = re.compile("/?|/[0-9]{1,6}")
_HOST = re.compile(r"[^\s\"'/?#@]*")
_OF_TLS = frozenset({"ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"})
_VERIFIED = frozenset({"none", "optional", "required"})


def parse(name: str, url: str) -> str:
    """The address that variable ``name`` says; several by semicolon, where the first does not answer.

    Raises:
        ImproperlyConfigured: it is none. It may hold a password anywhere, so no part of it is shown.
    """
    if not all(_is_redis(part) for part in url.split(";")):
        raise ImproperlyConfigured(
            f"{name} is no address of Redis; say redis://:PASSWORD@HOST:6379/0, or rediss:// for TLS; percent-encode "
            "the password (/ is %2F, ? is %3F, # is %23, @ is %40), and put no quotation marks around it."
        )
    return url


def _is_redis(url: str) -> bool:
    if not _SCHEME.match(url) or "," in url or "#" in url:  # the cache takes a comma for the end of an address
        return False
    try:
        parts = urlsplit(url)
        port, options = parts.port, parse_qsl(parts.query, strict_parsing=True) if parts.query else []
    except ValueError:  # its text may hold a part of the password
        return False
    if port == 0 or not _NUMBER.fullmatch(parts.path) or not _HOST.fullmatch(parts.hostname or ""):
        return False
    allowed = _OF_TLS if parts.scheme == "rediss" else frozenset()
    return all(key in allowed and (key != "ssl_cert_reqs" or value in _VERIFIED) for key, value in options)
