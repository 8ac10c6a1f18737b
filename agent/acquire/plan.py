"""Which files of a listing a job brings, and under which names: decided before the first byte, or refused whole."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from agent import wire
from agent.acquire import kinds, names, places
from agent.acquire.hub.listing import Listing
from agent.acquire.terms import Failed, Plan, PlannedFile

MAX_FILES = 100_000
MAX_FILE_BYTES = 16 * 1024**4  # the largest file of ext4
MAX_BYTES = 256 * 1024**4
_SHOWN = 5


def make(listing: Listing, order: wire.AcquireOrder) -> Plan:
    """The plan of this order; ``Failed`` (manifest_refused) says which name or size speaks against it."""
    if not places.is_repository(order.repo_id):
        raise _refused(f"{order.repo_id!r} is no repository's name: expected organisation/name.")
    _judge(listing.files)
    wanted = [file for file in listing.files if _selected(file.path, order.allow_patterns, order.ignore_patterns)]
    if not wanted:
        raise _refused(
            f"No file is left of the {len(listing.files)} at this commit: mend the allow and ignore patterns."
            if listing.files
            else "The repository holds no file at this commit."
        )
    _fit_together(wanted)
    _formats(wanted, order.allow_formats)
    return Plan(
        repo_id=order.repo_id,
        commit=listing.commit,
        files=tuple(sorted(wanted, key=lambda file: file.path)),
        selection=selection_digest(order.allow_patterns, order.ignore_patterns),
        gated=listing.gated,
    )


def selection_digest(allow: Iterable[str], ignore: Iterable[str]) -> str:
    """What the patterns select, in 64 hex digits; "" for everything. The control plane counts the same."""
    chosen = [sorted(set(allow)), sorted(set(ignore))]
    if not any(chosen):
        return ""
    return hashlib.sha256(json.dumps(chosen, separators=(",", ":")).encode()).hexdigest()


def _judge(files: Sequence[PlannedFile]) -> None:
    """The listing as a whole: one name of ill intent, and nothing that came with it is believed, selected or not."""
    if len(files) > MAX_FILES:
        raise _refused(f"The repository holds {len(files)} files; at most {MAX_FILES} are brought.")
    seen: set[str] = set()
    for file in files:
        if why := names.hostile(file.path):
            raise _refused(f"The name {shown(file.path)} is refused: {why}.")
        if file.path in seen:
            raise _refused(f"The listing names {shown(file.path)} twice.")
        seen.add(file.path)
        if not 0 <= file.size <= MAX_FILE_BYTES:
            raise _refused(f"{shown(file.path)} is listed with {file.size} bytes, which no file has.")


def plausible(files: Iterable[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Of a listing that is refused, the files that can be counted and named to people."""
    return tuple(file for file in files if not names.hostile(file.path) and 0 <= file.size <= MAX_FILE_BYTES)


def _fit_together(files: Sequence[PlannedFile]) -> None:
    """Only what is selected must fit on one disk: README.md and readme.md may both exist in git."""
    if two := names.clash(file.path for file in files):
        raise _refused(
            f"{shown(two[0])} and {shown(two[1])} cannot lie in one folder everywhere: they differ only in case or in "
            "Unicode form, or one is a file and the other a folder. Leave one out with an ignore pattern."
        )
    total = sum(file.size for file in files)
    if total > MAX_BYTES:
        raise _refused(f"The files have {total} bytes together; at most {MAX_BYTES} are brought.")


def _formats(files: Sequence[PlannedFile], allowed: Sequence[wire.Format]) -> None:
    """What the names alone give away; the bytes are looked at when they are here."""
    refused: dict[wire.Format, list[str]] = {}
    for file in files:
        kind = kinds.by_name(file.path, large=file.sha256 is not None)
        if kind is not None and kind not in allowed:
            refused.setdefault(kind, []).append(file.path)
    if not refused:
        return
    said = []
    for kind, found in refused.items():
        listed = ", ".join(shown(path) for path in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        said.append(f"{kinds.WHY[kind]} ({listed}{more}; format {kind!r})")
    raise _refused(
        f"The snapshot holds {'; '.join(said)}. Leave such files out with ignore patterns, or allow the format by name."
    )


def _selected(path: str, allow: Sequence[str], ignore: Sequence[str]) -> bool:
    """As the Hub's own library selects: case counts, ``*`` crosses ``/``, and ``dir/`` means all below it."""
    if allow and not any(fnmatchcase(path, _whole(pattern)) for pattern in allow):
        return False
    return not any(fnmatchcase(path, _whole(pattern)) for pattern in ignore)


def _whole(pattern: str) -> str:
    return pattern + "*" if pattern.endswith("/") else pattern


def shown(path: str) -> str:
    """A name as it can be shown to people: escaped, and cut."""
    return ascii(path if len(path) <= 120 else path[:117] + "...")


def _refused(detail: str) -> Failed:
    return Failed("manifest_refused", detail)
