"""The list that lies beside a published snapshot's files: what it is, and which bytes it must have."""

import hashlib
from collections.abc import Collection
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.acquire import names, places
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Plan, PlannedFile
from agent.wire import AcquireOrder
from agent.wire.values import END

NAME = "manifest.json"
OTHER_NAME = names.OUR_MANIFEST  # where the repository has a manifest.json of its own
_MAX_BYTES = 128 * 1024 * 1024  # as many and as long names as a listing may hold

_Size = Annotated[int, Meta(ge=0)]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file, and the digest that proves it."""

    path: str
    size: _Size
    sha256: Annotated[str, Meta(pattern=rf"^[0-9a-f]{{64}}{END}")] | None = None
    git_sha1: Annotated[str, Meta(pattern=rf"^[0-9a-f]{{40}}{END}")] | None = None

    @property
    def planned(self) -> PlannedFile:
        """As a plan has it."""
        return PlannedFile(self.path, self.size, self.sha256, self.git_sha1)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``manifest.json`` holds; the manifest itself is none of its files."""

    modelforge_manifest: Annotated[int, Meta(ge=1, le=1)] = 1
    repo_id: str
    commit: Annotated[str, Meta(pattern=rf"^[0-9a-f]{{40}}{END}")]
    selection: str = ""  # digest of the patterns that selected the files; "" for all
    revision: str = ""  # as it was ordered
    allow_patterns: list[str] = []
    ignore_patterns: list[str] = []
    allow_formats: list[str] = []  # beside those that only hold data
    bytes: _Size
    files: list[Entry]
    published_at: datetime

    def is_of(self, plan: Plan) -> bool:
        """Whether it lists exactly the files of that plan."""
        return (self.repo_id, self.commit, self.selection) == (plan.repo_id, plan.commit, plan.selection) and [
            entry.planned for entry in self.files
        ] == list(plan.files)


def name(paths: Collection[str]) -> str:
    """What the manifest is called beside these files and their folders."""
    return OTHER_NAME if any(path.partition("/")[0].casefold() == NAME for path in paths) else NAME


def render(plan: Plan, order: AcquireOrder, now: datetime) -> bytes:
    """The manifest of a plan, as it is written, with what was ordered for who looks at it later."""
    made = Manifest(
        repo_id=plan.repo_id,
        commit=plan.commit,
        selection=plan.selection,
        revision=order.revision,
        allow_patterns=order.allow_patterns,
        ignore_patterns=order.ignore_patterns,
        allow_formats=list(order.allow_formats),
        bytes=plan.bytes,
        files=[Entry(f.path, f.size, f.sha256, f.git_sha1) for f in plan.files],
        published_at=now,
    )
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def read(tree: Tree, snapshot: str) -> tuple[Manifest, str, str]:
    """The manifest of a published snapshot, its name, and the SHA-256 of its bytes.

    OSError where there is none, ValueError where what lies there is none of ours.
    """
    called = OTHER_NAME if tree.stat(f"{snapshot}/{OTHER_NAME}") is not None else NAME
    content = tree.read(f"{snapshot}/{called}", _MAX_BYTES)
    try:
        found = msgspec.json.decode(content, type=Manifest)  # its errors are ValueErrors
    except RecursionError:
        raise ValueError("a manifest that is nested as none of ours is") from None
    for entry in found.files:
        if names.hostile(entry.path) or len(entry.planned.digest) == 0:
            raise ValueError("a manifest with a name or digest that none of ours has")
    if not places.is_repository(found.repo_id):
        raise ValueError("a manifest of no repository")
    return found, called, hashlib.sha256(content).hexdigest()
