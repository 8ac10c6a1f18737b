"""What was said where, and the search for a secret in it, however it was wrapped."""

import base64
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane

_WRAPPED = re.compile(r"\.?[A-Za-z0-9_-]{24,}")


@dataclass
class Evidence:
    """Texts by where they stood, and the secrets by what they are."""

    secrets: dict[str, str] = field(default_factory=dict)
    answers: list[tuple[str, str]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)  # what commands printed

    def keep(self, what: str, answer: requests.Response) -> requests.Response:
        """Keep an answer, head and body."""
        head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        self.answers.append((f"{what} -> {answer.status_code}", f"{head}\n\n{answer.text}"))
        return answer

    def issue(self, name: str, secret: str) -> str:
        """The last answer kept issued this secret, which may stand in that one answer alone; the secret."""
        what, text = self.answers.pop()
        assert text.count(secret) >= 1, f"{what} does not show the {name}"
        self.answers.append((what, text.replace(secret, "")))
        self.secrets[name] = secret
        return secret

    def forgive(self, secret: str) -> None:
        """The last answer kept shows the sender what the sender typed."""
        what, text = self.answers.pop()
        self.answers.append((what, text.replace(secret, "", 1)))

    def find(self, places: dict[str, str]) -> list[str]:
        """Where a secret stands: "the secret in the place"."""
        found = []
        for place, text in places.items():
            whole = "\n".join([text, *unwrapped(text)])
            found += [
                f"{name} in {place}"
                for name, secret in self.secrets.items()
                if any(part in whole for part in telling(secret))
            ]
        return found


def telling(secret: str) -> list[str]:
    """The parts of a secret that nobody may see: of ours the chance, not the handle; of others all."""
    parts = secret.split("_")
    return [secret, parts[2]] if len(parts) == 4 and parts[0] in {"mfe", "mfn", "mfk"} else [secret]


def unwrapped(text: str) -> Iterator[str]:
    """What signed cookies and sessions hold: base64, compressed where it starts with a dot."""
    for found in set(_WRAPPED.findall(text)):
        body = found.lstrip(".")
        try:
            raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            yield (zlib.decompress(raw) if found.startswith(".") else raw).decode("utf-8", "replace")
        except (ValueError, zlib.error):
            continue


def database(plane: ControlPlane) -> dict[str, str]:
    """Every row of every table as text, and the bytes of the embedded file, which keep what was deleted."""
    found = {}
    for table in plane.tables():
        rows = plane.sql(f'SELECT * FROM "{table}"')  # noqa: S608 - a table's own name
        found[f"table {table}"] = "\n".join("|".join(map(str, row)) for row in rows)
    for path in sorted(plane.folder.glob("*.sqlite3*")):
        found[path.name] = path.read_bytes().decode("latin-1")
    return found


def broker(plane: ControlPlane) -> dict[str, str]:
    """Every key and value that the broker and cache hold."""
    if plane.broker is None:
        return {}
    import redis

    with redis.Redis.from_url(plane.broker.url()) as client:
        return {f"broker key {key!r}": repr(key) + repr(client.dump(key)) for key in client.scan_iter()}


def files(folder: Path, *but: str) -> dict[str, str]:
    """Every file below a folder, but those with these names."""
    return {
        str(path.relative_to(folder)): path.read_bytes().decode("latin-1")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(but)
    }


def processes(plane: ControlPlane, *agents: Agent) -> dict[str, str]:
    """The command lines of all processes, as everybody on the machine may read them."""
    pids = [child.process.pid for child in (plane.web, plane.worker) if child.process] + [one.pid for one in agents]
    found = {}
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in [str(pid), *children]:
            found[f"command line of {one}"] = Path(f"/proc/{one}/cmdline").read_text()
    return found


def environment(pid: int) -> dict[str, str]:
    """What a process was started with."""
    return {f"environment of {pid}": Path(f"/proc/{pid}/environ").read_text()}
