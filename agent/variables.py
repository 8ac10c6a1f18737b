"""The names of the agent's environment variables, and how one is read: every fault is collected, none shows a value."""

import difflib
import re
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

PREFIX = "MODELFORGE_"

SECRETS = ("MODELFORGE_AGENT_ENROLLMENT_TOKEN", "MODELFORGE_HF_TOKEN")
"""Also read from the file that NAME_FILE names."""

KNOWN = frozenset(
    {
        *SECRETS,
        *(f"{name}_FILE" for name in SECRETS),
        "MODELFORGE_AGENT_CONTROL_PLANE_URL",
        "MODELFORGE_AGENT_DISPLAY_NAME",
        "MODELFORGE_AGENT_HOSTNAME",
        "MODELFORGE_AGENT_TLS_VERIFY",
        "MODELFORGE_AGENT_CA_CERT_PATH",
        "MODELFORGE_AGENT_ALLOW_INSECURE_TLS",
        "MODELFORGE_AGENT_PROXY",
        "MODELFORGE_AGENT_STATE_DIR",
        "MODELFORGE_AGENT_HF_CACHE_DIR",
        "MODELFORGE_AGENT_ARTIFACT_DIR",
        "MODELFORGE_AGENT_QUARANTINE_DIR",
        "MODELFORGE_AGENT_RUN_DIR",
        "MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE",
        "MODELFORGE_AGENT_FACTS_INTERVAL",
        "MODELFORGE_AGENT_REQUEST_TIMEOUT",
        "MODELFORGE_AGENT_NVML_TIMEOUT",
        "MODELFORGE_AGENT_PARK_SECONDS",
        "MODELFORGE_AGENT_LOG_LEVEL",
        "MODELFORGE_AGENT_LOG_FORMAT",
        "MODELFORGE_AGENT_HUB_CA_CERT_PATH",
        "MODELFORGE_AGENT_HUB_PROXY",
        "MODELFORGE_AGENT_BANDWIDTH_LIMIT",
        "MODELFORGE_AGENT_QUIET_HOURS",
        "MODELFORGE_AGENT_QUARANTINE_MAX_FILES",
        "MODELFORGE_AGENT_QUARANTINE_MAX_BYTES",
        # Read by the Compose files, not by the agent; in the same .env.
        "MODELFORGE_AGENT_STATE_VOLUME",
        "MODELFORGE_AGENT_HF_CACHE_VOLUME",
        "MODELFORGE_AGENT_ARTIFACT_VOLUME",
        "MODELFORGE_AGENT_QUARANTINE_VOLUME",
        "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ALIAS",
        "MODELFORGE_AGENT_CONTROL_PLANE_HOST_ADDRESS",
    }
)

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_FAR = 0.6  # about one word of the name is spelled badly
_MAX_SECRET_FILE_BYTES = 64 * 1024
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)(B|[kK]B|MB|GB|TB|KiB|MiB|GiB|TiB)?")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that shows itself only to who asks by name; never in a repr, a log line or a traceback."""

    _text: str = field(repr=False)
    source: str = field(default="", compare=False)  # where it stood, for messages

    def reveal(self) -> str:
        """The secret itself."""
        return self._text

    def __str__(self) -> str:
        return "[secret]"


class Variables:
    """The environment as the agent reads it; secrets are taken out of it, and every fault lands in ``faults``."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[str] = []

    def fault(self, name: str, what: str) -> None:
        """Note that variable ``name`` is wrong; ``what`` says how and what to do, without the value."""
        self.faults.append(f"{name} {what}")

    def text(self, name: str, default: str = "", *, longest: int = 255) -> str:
        """The value without surrounding blanks; an empty value counts as unset, as Compose passes those."""
        value = self._environ.get(name, "").strip()
        if not value:
            return default
        if len(value) > longest:
            self.fault(name, f"is {len(value)} characters long; shorten it to at most {longest}.")
            return default
        if not value.isprintable():
            self.fault(name, "holds control characters or line breaks; write it on one line.")
            return default
        return value

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """One of a few words, in any case."""
        value = self.text(name, default).lower()
        allowed = tuple(choices)
        if value not in allowed:
            self.fault(name, f"must be one of {', '.join(allowed)}.")
            return default
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """true or false (also 1/0, yes/no, on/off)."""
        value = self.text(name).lower()
        if value in _TRUE or value in _FALSE:
            return value in _TRUE
        if value:
            self.fault(name, "must be true or false.")
        return default

    def folder(self, name: str, default: str) -> Path:
        """An absolute folder that is not the root of the file system."""
        path = Path(self.text(name, default, longest=4096))
        if not path.is_absolute():
            self.fault(name, "must be an absolute path, such as " + default + ".")
        elif path == Path("/"):
            self.fault(name, "must be a folder of its own, never the root of the file system.")
        return path

    def duration(self, name: str, default: float, *, low: float, high: float) -> timedelta:
        """A number of seconds between two bounds."""
        value = self.text(name)
        try:
            seconds = float(value) if value else default
        except ValueError:
            seconds = -1
        if not low <= seconds <= high:
            self.fault(name, f"must be a number of seconds between {low:g} and {high:g}.")
            seconds = default
        return timedelta(seconds=seconds)

    def count(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number between two bounds."""
        value = self.text(name)
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= 15 else -1
        if value and not low <= number <= high:
            self.fault(name, f"must be a whole number between {low} and {high}.")
        return number if value and low <= number <= high else default

    def size(self, name: str, text: str, *, low: int, high: int) -> int:
        """An amount of bytes as people write it (50GB, 512MiB, or just a number); ``low`` where it is none."""
        found = _SIZE.fullmatch(text)
        amount = int(float(found[1]) * _UNITS[(found[2] or "").upper()]) if found else -1
        if not low <= amount <= high:
            least = f", at least {low}" if low > 1 else ""
            self.fault(name, f"must be an amount of bytes such as 50MB or 20GiB (KB, MB, GB, KiB, MiB, GiB){least}.")
            return low
        return amount

    def secret(self, name: str) -> Secret | None:
        """A secret from NAME or from the file that NAME_FILE names; both leave the environment, so that no child and no
        crash report inherits them."""
        direct = self._environ.pop(name, "").strip()
        file_name = f"{name}_FILE"
        file = self._environ.pop(file_name, "").strip()
        if direct and file:
            self.fault(name, f"and {file_name} are both set; keep one of them and unset the other.")
            return None
        if not file:
            return Secret(direct, name) if direct else None
        try:
            with Path(file).open(encoding="utf-8") as stream:
                value = stream.read(_MAX_SECRET_FILE_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text"
            self.fault(
                file_name, f"names a file that cannot be read ({reason}){_at(file)}. Mend its path or its rights."
            )
            return None
        if not value:
            self.fault(file_name, f"names an empty file{_at(file)}. Write the secret into it, or unset the variable.")
            return None
        return Secret(value, file_name)

    def unknown(self) -> list[str]:
        """Names that start with MODELFORGE_ and mean nothing here, each with the nearest name that does."""
        found = []
        for name in sorted(self._environ):
            if name.startswith(PREFIX) and name not in KNOWN:
                near = nearest(name, KNOWN)
                found.append(f"{name} (did you mean {near}?)" if near else name)
        return found


def _at(file: str) -> str:
    """Which file; nothing where it may be the secret itself, by somebody who took one name for the other."""
    return f": {file}" if file.startswith("/") else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, compared word by word: most begin alike, which says nothing; else ""."""
    words = name.split("_")

    def distance(other: str) -> float:
        theirs = other.split("_")
        score = sum(max(difflib.SequenceMatcher(None, word, their).ratio() for their in theirs) for word in words)
        return len(words) - score + 0.1 * abs(len(theirs) - len(words))

    best = min(sorted(known), key=distance, default="")
    return best if best and distance(best) <= _FAR else ""
