"""What a job's partial folder belongs to: written down before its first byte, compared before anything is resumed."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import msgspec

from agent.acquire import places
from agent.acquire.disk import access, remove
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Plan

NAME = "job.json"
_MODE = 0o600
_MAX_BYTES = 4096
_MOST_NOTED_BYTES = 4 * 1024 * 1024


class _Noted(msgspec.Struct, frozen=True):
    """Of what the fetch notes about a part, what is read here."""

    plan: str
    spans: list[tuple[int, int]] = []


def take(root: Path, job_id: UUID, plan: Plan) -> Path:
    """The job's partial folder, ready for this plan. What lies there for another plan, or for none, is thrown away."""
    place = places.partial(job_id)
    said = {"repo_id": plan.repo_id, "commit": plan.commit, "plan_digest": plan.digest}
    with places.writing(root, "preparing the job's folder"):
        with Tree(root) as tree:
            other = tree.stat(place) is not None and _said(tree, place) != said
        if other:
            remove.forget(root, [job_id])
        with Tree(root) as tree:
            access.make_private(tree, place)
            if tree.stat(f"{place}/{NAME}") is None:
                tree.write(f"{place}/{NAME}", (json.dumps(said) + "\n").encode(), _MODE)
                tree.sync(place)
    return root / place


def held_bytes(root: Path, job_id: UUID, plan: Plan) -> int:
    """How much of the plan this job has on the disk already, verified or not: a guess for the guard, bounded by it."""
    place = places.partial(job_id)
    with places.writing(root, "measuring what is here"), Tree(root) as tree:
        if tree.stat(place) is None or _said(tree, place).get("plan_digest") != plan.digest:
            return 0
        blocks = sum(min(found.st_blocks * 512, found.st_size) for name, found in tree.files(place) if not _ours(name))
    return min(blocks, plan.bytes)


def noted_bytes(root: Path, job_id: UUID, plan: Plan) -> int:
    """How much of the plan an earlier attempt left by its own notes: files that are whole, spans of those that are not.

    Only told, never built upon: the fetch looks by itself, and the digests decide.
    """
    place, digest, found = places.partial(job_id), plan.digest, 0
    with places.writing(root, "counting what is here"), Tree(root) as tree:
        if tree.stat(place) is None or _said(tree, place).get("plan_digest") != digest:
            return 0
        sizes = {name: status.st_size for name, status in tree.files(place)}
        for number, file in enumerate(plan.files):
            if sizes.get(f"{places.SNAPSHOT}/{file.path}") == file.size:
                found += file.size
            elif f"parts/{number}.json" in sizes:
                found += min(_spans(tree, f"{place}/parts/{number}.json", digest), sizes.get(f"parts/{number}.part", 0))
    return min(found, plan.bytes)


def _spans(tree: Tree, note: str, plan_digest: str) -> int:
    """The bytes that a part's note says are written; none where it is of another plan, or says nothing."""
    try:
        said = msgspec.json.decode(tree.read(note, _MOST_NOTED_BYTES), type=_Noted)
    except (OSError, ValueError, RecursionError):
        return 0
    return sum(max(0, end - first) for first, end in said.spans) if said.plan == plan_digest else 0


def lying_bytes(root: Path, job_ids: Iterable[UUID]) -> int:
    """What room the half-done files of these jobs take, so what their deletion gives back."""
    found = 0
    with places.writing(root, "measuring half-done files"), Tree(root) as tree:
        for job_id in job_ids:
            with suppress(FileNotFoundError):  # finished or forgotten meanwhile
                found += sum(
                    file.st_blocks * 512 for _, file in tree.files(places.partial(job_id)) if file.st_nlink == 1
                )
    return found


def inherit(root: Path, job_id: UUID, plan: Plan, others: Iterable[UUID]) -> bool:
    """Where this job has begun nothing yet, it goes on with what a cancelled one left of the very same plan."""
    with places.writing(root, "looking for what an earlier job left"), Tree(root) as tree:
        if tree.stat(places.partial(job_id)) is not None:
            return False
        for other in others:
            with suppress(FileNotFoundError):
                if _said(tree, places.partial(other)).get("plan_digest") == plan.digest:
                    tree.rename(places.partial(other), places.partial(job_id))
                    tree.sync(places.PARTIAL)
                    return True
    return False


def _ours(name: str) -> bool:
    """Whether a file there holds what we say about bytes, and none of them."""
    return name == NAME or (name.startswith("parts/") and name.endswith(".json"))


def _said(tree: Tree, place: str) -> dict[str, str]:
    """What is written there; nothing where it cannot be believed."""
    try:
        said = json.loads(tree.read(f"{place}/{NAME}", _MAX_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
