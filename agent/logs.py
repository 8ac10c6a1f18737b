"""What the agent says: JSON lines for machines, plain text on a terminal, and never a secret in either."""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

_SECRETS = re.compile(r"\b(mf[enk]_|hf_)[A-Za-z0-9_\-]{4,}")
_AUTHORIZATION = re.compile(
    r"""(?ix) (authorization | x-modelforge-admin-token) (["']?\s*[:=]\s*["']?)
    (?:(bearer|basic|digest)\s+)? [^\s"',}]+"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=_\-.~]{8,}")
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)[^/\s@\"'<>]+@")
_QUERY = re.compile(r"(?i)\b(https?://[^\s?\"'<>]+)\?[^\s\"'<>]+")
_CONTROL = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # they steer a terminal, or no text
_CONTROLS = re.compile(f"[{_CONTROL}]+")
_UNESCAPED = re.compile(f"[{_CONTROL}]")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_hidden: set[str] = set()
_SHORTEST_HIDDEN = 6


def hide(secret: str) -> None:
    """Never show this text, whatever its shape: a mirror's token need not look like the Hub's."""
    if len(secret) >= _SHORTEST_HIDDEN:
        _hidden.add(secret)


def redact(text: str) -> str:
    """The text without tokens, credentials, Authorization values, user names in addresses, or signed query strings."""
    for secret in _hidden:
        text = text.replace(secret, "[redacted]")
    text = _AUTHORIZATION.sub(r"\1\2[redacted]", text)
    text = _BEARER.sub(r"\1 [redacted]", text)
    text = _SECRETS.sub(r"\1[redacted]", text)
    text = _USERINFO.sub(r"\1[redacted]@", text)
    return _QUERY.sub(r"\1?[redacted]", text)


def one_line(text: str) -> str:
    """The text without line ends, escape sequences' ESC, and whatever else steers a terminal or turns words around."""
    return _CONTROLS.sub(" ", text)


def told(text: str, most: int) -> str:
    """What somebody else said, fit to repeat: one line of at most ``most`` printable characters, without secrets."""
    line = one_line(text[: 4 * most])  # cut first: a megabyte takes the expressions minutes
    seen = "".join(char if char.isprintable() else " " for char in line)  # soft hyphens, odd spaces, private signs
    return redact(seen).strip()[:most]


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _PLAIN and not key.startswith("_")}


class JsonLines(logging.Formatter):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, the extras, and ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        for key, value in _extras(record).items():
            line[key] = value if isinstance(value, (int, float, bool)) or value is None else redact(str(value))
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        # JSON leaves some of them as they are, and a person may look at it on a terminal.
        return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(line, ensure_ascii=False))


class PlainText(logging.Formatter):
    """A line that a person reads: time, level, message, and the extras behind it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        extras = "".join(f"  {key}={value}" for key, value in _extras(record).items() if value not in ("", None))
        text = redact(one_line(f"{at} {record.levelname.lower():<7} {record.getMessage()}{extras}"))
        if record.exc_info:  # indented: no line of it can pass for a message of ours
            trace = redact(self.formatException(record.exc_info))
            text += "".join(f"\n  {one_line(line)}" for line in trace.split("\n"))
        return text


def set_up(*, level: str, form: str, stream: TextIO | None = None) -> None:
    """Send everything to ``stream`` (standard output): ``form`` is "json", "text", or "auto" (text on a terminal)."""
    out = stream if stream is not None else sys.stdout
    handler = logging.StreamHandler(out)
    plain = form == "text" or (form == "auto" and out.isatty())
    handler.setFormatter(PlainText() if plain else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("urllib3").setLevel(max(logging.INFO, root.level))
    logging.captureWarnings(True)
