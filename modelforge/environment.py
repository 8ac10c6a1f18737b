"""The control plane's environment: variables and their ``NAME_FILE`` twins, each fault told with its remedy."""

import contextlib
import difflib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from modelforge import brokers, databases, origins


class Environment:
    """Typed reads of ``MODELFORGE_*``."""

    def __init__(self, var: Path) -> None:
        self.var = var
        """The folder that holds what the control plane keeps."""
        self._read: set[str] = set()

    def raw(self, name: str) -> str | None:
        """The variable, or the contents of the file that ``NAME_FILE`` names; None where neither is set."""
        self._read.add(name)
        value, path = os.environ.get(name) or None, os.environ.get(f"{name}_FILE") or None
        if value and path:
            raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them.")
        if path is None:
            return value
        try:
            return Path(path).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError) as fault:
            why = fault.strerror if isinstance(fault, OSError) else "it is no text in UTF-8"
            # Without what it says: who takes one name for the other has put the secret itself there.
            raise ImproperlyConfigured(
                f"{name}_FILE names a file that cannot be read ({why}). Say the path of a file that uid {os.geteuid()} "
                f"can read, or set {name} itself."
            ) from None

    def flag(self, name: str, default: bool) -> bool:
        """``true``/``false`` (also 1/0, yes/no, on/off)."""
        value = self.raw(name)
        if value is None:
            return default
        if value.lower() not in {"true", "false", "1", "0", "yes", "no", "on", "off"}:
            raise ImproperlyConfigured(f"{name} is {_shown(value)}; say true or false.")
        return value.lower() in {"true", "1", "yes", "on"}

    def number(self, name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
        """A whole number within bounds."""
        value = self.raw(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= _DIGITS) or not least <= int(value) <= most:
            raise ImproperlyConfigured(f"{name} is {_shown(value)}; say a whole number from {least} to {most}.")
        return int(value)

    def seconds(self, name: str, default: int, *, least: int, most: int) -> timedelta:
        """A duration, told in whole seconds."""
        return timedelta(seconds=self.number(name, default, least=least, most=most))

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """One of a few words, in any case."""
        value, allowed = self.raw(name) or default, tuple(choices)
        if value.lower() not in {word.lower() for word in allowed}:
            raise ImproperlyConfigured(f"{name} is {_shown(value)}; say one of {', '.join(allowed)}.")
        return value

    def rate(self, name: str, default: str) -> str:
        """How often: a number, a slash and a unit of time."""
        value = self.raw(name) or default
        if not _RATE.fullmatch(value):
            raise ImproperlyConfigured(
                f"{name} is {_shown(value)}; say a whole number from 1, a slash and second, minute, hour or day, "
                f"such as {default}."
            )
        return value

    def hosts(self, name: str, default: str) -> list[str]:
        """Host names by comma."""
        return origins.hosts(name, [part.strip() for part in (self.raw(name) or default).split(",") if part.strip()])

    def public_url(self, name: str, default: str) -> str:
        """How browsers reach it; without a slash at its end."""
        return origins.public_url(name, self.raw(name) or default)

    def header(self, name: str, default: str) -> str:
        """The name of an HTTP header."""
        value = self.raw(name) or default
        if not re.fullmatch("[A-Za-z0-9-]{1,64}", value):
            raise ImproperlyConfigured(
                f"{name} is {_shown(value)}; say a header by its name: letters, digits, hyphens."
            )
        return value

    def path(self, name: str, default: Path) -> Path:
        """A folder that can be written, made where it is missing; the default lies in the var folder."""
        value = self.raw(name)
        return folder(name, Path(value)) if value else folder(VAR, default)

    def secret(self, name: str, *, minimum: int = 32, required: bool = True) -> str:
        """A secret of at least ``minimum`` characters; where it is required and unset, one is made and kept (0600)."""
        value = self.raw(name)
        if value is None:
            return self._kept(name) if required else ""
        if len(value) < minimum:
            raise ImproperlyConfigured(f"{name} has {len(value)} characters; give it at least {minimum} random ones.")
        return value

    def _kept(self, name: str) -> str:
        path = folder(VAR, self.var) / name.removeprefix("MODELFORGE_").lower().replace("_", "-")
        try:
            return self._kept_in(path)
        except OSError as fault:
            raise ImproperlyConfigured(
                f"{path} cannot be read and made by uid {os.geteuid()}: {fault.strerror}. Mend that, or set {name}."
            ) from fault

    def _kept_in(self, path: Path) -> str:
        with contextlib.suppress(FileNotFoundError):
            return path.read_text(encoding="ascii").strip()
        with tempfile.NamedTemporaryFile("w", dir=self.var, encoding="ascii", prefix=".new-") as file:  # 0600
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process was first
                os.link(file.name, path)
        return path.read_text(encoding="ascii").strip()

    def database(self, name: str, default: str) -> dict[str, Any]:
        """A database by its URL: SQLite in WAL with immediate transactions, PostgreSQL with lasting connections."""
        value = self.raw(name)
        config = databases.parse(name, value or default)
        config["CONN_MAX_AGE"] = None
        config["CONN_HEALTH_CHECKS"] = True
        if config["ENGINE"].endswith("sqlite3"):
            _can_hold(name if value else VAR, Path(config["NAME"]))
            config["OPTIONS"] = {
                "transaction_mode": "IMMEDIATE",
                "timeout": 8,  # seconds; an agent waits ten for its answer, and shall hear 503
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;",
            }
        else:
            config["OPTIONS"] = {"connect_timeout": 5} | config.get("OPTIONS", {})
        return config

    def broker(self, name: str, default: str) -> str:
        """Redis by its address."""
        url = self.raw(name)
        return brokers.parse(name, url) if url else default

    def cache(self, name: str) -> dict[str, Any]:
        """Redis where there is one; else each process remembers for itself."""
        url = self.broker(name, "")
        if not url:
            return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
        patience = {"socket_connect_timeout": 2, "socket_timeout": 2}  # a Redis that hangs must not hold every request
        return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url, "OPTIONS": patience}

    def unknown(self) -> list[str]:
        """Names that start with MODELFORGE_ and mean nothing here, each with the nearest that does."""
        known = self._read | {f"{name}_FILE" for name in self._read} | ELSEWHERE
        meant = sorted(name.removeprefix(PREFIX) for name in self._read | ELSEWHERE)  # they all begin alike
        found = []
        for name in sorted(os.environ):
            if name.startswith(PREFIX) and name not in known and not name.startswith(OF_OTHERS):
                near = difflib.get_close_matches(name.removeprefix(PREFIX), meant, n=1, cutoff=0.7)
                found.append(f"{name} (did you mean {PREFIX}{near[0]}?)" if near else name)
        return found


def folder(name: str, path: Path) -> Path:
    """The folder that a variable names, made where it is missing.

    Raises:
        ImproperlyConfigured: it is none, or this process cannot write there.
    """
    uid, fault = os.geteuid(), ""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        fault = "a file stands there"
    except OSError as error:
        fault = error.strerror or str(error)
    if not fault and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        fault = "Permission denied"
    if fault:
        raise ImproperlyConfigured(
            f"{name}: {path} is no folder that uid {uid} can write ({fault}). Mend its rights (chown {uid}), "
            f"or let {name} name another."
        )
    return path


def _can_hold(name: str, file: Path) -> None:
    """A SQLite file, or one that is yet to be made: it is written, and others are made beside it."""
    if str(file).startswith((":memory:", "file:")):
        return
    folder(name, file.parent)
    try:
        usable = not file.exists() or (file.is_file() and os.access(file, os.R_OK | os.W_OK))
    except OSError:  # a name that is too long
        usable = False
    if not usable:
        raise ImproperlyConfigured(
            f"{name}: {file} is no file that uid {os.geteuid()} can read and write. Mend its rights, or name another."
        )


def _shown(value: str) -> str:
    """The value on one line, and no more of it than fits there."""
    return repr(value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}...")


_LONGEST_SHOWN = 60
_DIGITS = 20  # Python refuses to read a number of thousands
_RATE = re.compile("[1-9][0-9]{0,8}/(s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?)")

PREFIX = "MODELFORGE_"
VAR = "MODELFORGE_VAR_DIR"
OF_OTHERS = ("MODELFORGE_AGENT_", "MODELFORGE_TEST_")
"""The agent's names, which may stand in the same .env, and the test suite's."""
_COMPOSE = (
    *("DOMAIN", "HTTPS_PORT", "TLS", "CERTIFICATES", "TRUSTED_PROXIES", "KEYS_VOLUME", "WEB_REPLICAS", "TAG"),
    *("POSTGRES_IMAGE", "REDIS_IMAGE", "PROXY_IMAGE"),
)
_MAKE = ("VENV",)
_SOMETIMES = ("QUEUE_DIR", "QUEUE_DIR_FILE")  # read without Redis alone
ELSEWHERE = {VAR, "MODELFORGE_HF_TOKEN", "MODELFORGE_HF_TOKEN_FILE"}
ELSEWHERE |= {PREFIX + name for name in (*_COMPOSE, *_MAKE, *_SOMETIMES)}
"""Names that mean something to others than these settings, in the same environment."""


def read(base: Path) -> Environment:
    """The environment of this process; ``MODELFORGE_VAR_DIR`` (default ``var/``) holds what the control plane keeps."""
    return Environment(Path(os.environ.get(VAR) or base / "var"))
