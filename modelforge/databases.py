"""The address of a database, taken apart before anything connects: a fault is told without a word of the address."""

import re
import warnings
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from psycopg.pq import Conninfo

FORMS = (
    "say postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:////FILE; "
    "percent-encode the password (/ is %2F, ? is %3F, @ is %40), and put no quotation marks around it"
)
_PLACE = (
    f"has a host that can be none, or a port outside 1 to 65535; {FORMS}. A socket: postgresql:///NAME?host=/FOLDER"
)
_KNOWN = re.compile(r"(?i:postgresql|postgres|psql|pgsql|sqlite)://")
_MEMORY = "sqlite://:memory:"
_LONGEST_NAME = 63  # characters, as Django counts
_DJANGOS = frozenset({"assume_role", "isolation_level", "prepare_threshold", "server_side_binding"})
_NUMBERS = ("connect_timeout", "isolation_level", "prepare_threshold")
_TLS = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})


def parse(name: str, url: str) -> dict[str, Any]:
    """Django's settings of the database that variable ``name`` names.

    Raises:
        ImproperlyConfigured: it names none. The address may hold a password anywhere, so no part of it is shown.
    """
    if not _KNOWN.match(url):
        raise ImproperlyConfigured(f"{name} is no address of a database; {FORMS}.")
    config = _taken_apart(name, url)
    if fault := _of_sqlite(url) if url[:6].lower() == "sqlite" else _of_postgresql(url, config):
        raise ImproperlyConfigured(f"{name} {fault}.")
    if any("\0" in str(value) for value in config.values()):
        raise ImproperlyConfigured(f"{name} holds a null character (%00); {FORMS}.")
    return config


def _taken_apart(name: str, url: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these would show the whole address
        try:
            return dict(environ.Env.db_url_config(url))
        except ValueError:
            # Its text holds what was taken for a port, which may be a part of the password.
            raise ImproperlyConfigured(f"{name} {_PLACE}.") from None


def _of_sqlite(url: str) -> str:
    """What is wrong with it; "" where nothing is."""
    if url == _MEMORY or url[len("sqlite://") :][:1] in ("", "/", "?"):
        return ""
    return "is no address of a SQLite file; say sqlite:////FILE with four slashes for an absolute path, three from here"


def _of_postgresql(url: str, config: dict[str, Any]) -> str:
    """What is wrong with it; "" where nothing is."""
    options = config.get("OPTIONS", {})
    before, _, after = url.partition("://")[2].partition("?")
    if "@" in before.partition("/")[2]:
        return f"has an @ behind its host; {FORMS}"
    if not set(options) <= _DJANGOS | {option.keyword.decode() for option in Conninfo.get_defaults()}:
        return f"has an option behind its ? that PostgreSQL does not know (sslmode is one that it does); {FORMS}"
    if any(part and "=" not in part for part in after.split("&")):
        return f"has something behind its ? that is not OPTION=VALUE; {FORMS}"
    if options.get("sslmode", "prefer") not in _TLS:
        return f"has an sslmode that PostgreSQL does not know; say one of {', '.join(sorted(_TLS))}"
    if not all(isinstance(options.get(option, 1), int) for option in _NUMBERS):
        return f"has an option behind its ? that is no number; {', '.join(_NUMBERS)} are"
    if not (_is_host(str(config["HOST"])) and _are_ports(config["PORT"]) and _are_ports(options.get("port", ""))):
        return _PLACE
    if not config["NAME"] and not options.get("service"):
        return f"names no database behind its host; {FORMS}"
    if len(config["NAME"]) > _LONGEST_NAME:
        return f"names a database with more than {_LONGEST_NAME} characters, which PostgreSQL cannot have; {FORMS}"
    return ""


def _is_host(text: str) -> bool:
    """A name, an address, a socket's folder, or several of them by comma."""
    if text.startswith("/"):
        return True
    if re.search(r"[\s\"'/?#@]|%2f", text, re.IGNORECASE):
        return False
    return "," not in text or not any(":" in part for part in text.split(",") if not part.startswith("["))


def _are_ports(said: object) -> bool:
    parts = str(said).split(",") if said not in ("", None) else []
    return all(re.fullmatch("[0-9]{1,5}", part) and 0 < int(part) <= 65535 for part in parts)
