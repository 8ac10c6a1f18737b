"""What may be asked of the Hub: names of repositories and revisions, patterns of files, formats that run code."""

import re
from collections.abc import Iterator
from typing import Any, get_args

from agent import wire
from agent.protocol import Code
from agent.wire import FieldError
from nodes.callers import Refused
from nodes.control import reason_of

MAX_REPO_ID = 96  # as the Hub counts
MAX_REVISION = 250
MAX_PATTERNS = 64
MAX_PATTERN = 512
FORMATS: tuple[str, ...] = get_args(wire.Format)

_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"(?:{_NAME}/)?{_NAME}")
_UNFIT = re.compile(r"\.\.|//|@\{|[\\~^:?*\[\x7f]|[/.]$|^[/.-]|\.lock$|/\.")
"""What git lets in no name of a branch or tag, so that nothing odd ever stands in an address of the Hub."""
_COMMIT = re.compile(r"[0-9a-fA-F]{40}")


def checked(
    *, repo_id: Any, revision: Any, allow_patterns: Any, ignore_patterns: Any, allow_formats: Any, reason: Any
) -> dict[str, Any]:
    """The fields of an order as a job keeps them.

    Raises:
        Refused: ``invalid``, naming every field at fault.
    """
    why = reason_of(reason, required=False)
    errors = [
        *_repo_faults(repo_id),
        *_revision_faults(revision),
        *_pattern_faults(allow_patterns, "allow_patterns"),
        *_pattern_faults(ignore_patterns, "ignore_patterns"),
        *_format_faults(allow_formats, why),
    ]
    if errors:
        raise Refused(Code.INVALID, "; ".join(f"{e.field}: {e.detail}" for e in errors[:3]), errors=errors)
    return {
        "repo_id": repo_id,
        "revision": commit_of(revision) or revision,
        "allow_patterns": sorted(set(allow_patterns)),
        "ignore_patterns": sorted(set(ignore_patterns)),
        "allow_formats": sorted(set(allow_formats)),
        "reason": why,
    }


def commit_of(revision: str) -> str:
    """The commit that a revision already is, in small letters; "" for a branch or tag."""
    return revision.lower() if _COMMIT.fullmatch(revision) else ""


def _repo_faults(value: Any) -> Iterator[FieldError]:
    fits = isinstance(value, str) and len(value) <= MAX_REPO_ID and _REPO.fullmatch(value)
    if not fits or "--" in value or ".." in value or value.endswith(".git"):
        detail = (
            f"Give the repository as organization/model: at most {MAX_REPO_ID} letters, digits and ._- , "
            "without -- or .. , and each part beginning and ending with a letter or digit."
        )
        yield FieldError(field="repo_id", detail=detail)


def _revision_faults(value: Any) -> Iterator[FieldError]:
    plain = isinstance(value, str) and 0 < len(value) <= MAX_REVISION and value.isprintable() and " " not in value
    if not plain or _UNFIT.search(value):
        detail = f"Give a branch, a tag or a commit, such as main: at most {MAX_REVISION} characters, no blanks."
        yield FieldError(field="revision", detail=detail)


def _pattern_faults(value: Any, field: str) -> Iterator[FieldError]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or len(value) > MAX_PATTERNS:
        yield FieldError(field=field, detail=f"Give a list of at most {MAX_PATTERNS} patterns, such as *.safetensors.")
        return
    for number, pattern in enumerate(value):
        if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN or not pattern.isprintable():
            detail = f"A pattern has 1 to {MAX_PATTERN} characters, none a control character."
            yield FieldError(field=f"{field}.{number}", detail=detail)


def _format_faults(value: Any, reason: str) -> Iterator[FieldError]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or any(item not in FORMATS for item in value):
        yield FieldError(field="allow_formats", detail=f"Give a list of {', '.join(FORMATS)}; none is the safe case.")
    elif value and not reason:
        detail = f"Say why this order allows {', '.join(value)}: such files run code when they are loaded."
        yield FieldError(field="reason", detail=detail)
