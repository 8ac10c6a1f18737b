"""Where things lie in a storage root: half-done jobs, published snapshots, and what is being removed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from os import statvfs
from pathlib import Path
from uuid import UUID

from agent import wire
from agent.acquire.terms import Failed

MARKER = ".modelforge-root"
PARTIAL = ".partial"
REMOVED = ".removed"
MODELS = "models"
SNAPSHOT = "snapshot"  # in a job's partial folder: verified files under their names

REPO = re.compile(r"(?!\.|-)[A-Za-z0-9._-]{1,96}(?<!\.|-)(/(?!\.|-)[A-Za-z0-9._-]{1,96}(?<!\.|-))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TAIL = re.compile(r"[0-9a-f]{40}(\.[0-9a-f]{12})?")


def partial(job_id: UUID) -> str:
    """Where a job's half-done files lie, below the root."""
    return f"{PARTIAL}/{job_id}"


def removed(job_id: UUID) -> str:
    """Where a job's unpublished files are deleted, below the root."""
    return f"{REMOVED}/{job_id}"


def is_repository(repo_id: str) -> bool:
    """Whether it may name a repository: as the Hub has it, and never a folder that could hold a snapshot itself."""
    if not REPO.fullmatch(repo_id) or ".." in repo_id or "--" in repo_id:
        return False
    return not any(_TAIL.fullmatch(name) for name in repo_id.split("/"))


def published(order: wire.VerifyOrder | wire.RemoveOrder) -> str:
    """Where the meant snapshot lies, below the root. An order that points elsewhere is refused, whoever wrote it."""
    head, _, tail = order.snapshot.rpartition("/")
    ok = is_repository(order.repo_id) and head == f"{MODELS}/{order.repo_id}" and _TAIL.fullmatch(tail)
    if not ok or not _COMMIT.fullmatch(order.commit) or not tail.startswith(order.commit):
        said = f"The order's path is no snapshot of {order.repo_id!r} at {order.commit!r}; nothing was done."
        raise Failed("unsupported", said)
    return order.snapshot


@contextmanager
def writing(root: Path, doing: str) -> Iterator[None]:
    """Tell what a disk refuses in the job's words: full is a lasting failure with numbers, all else passes."""
    try:
        yield
    except OSError as error:
        raise told(error, root, doing) from error


def told(error: OSError, root: Path, doing: str) -> Failed:
    """A disk's refusal as a failure of the job."""
    if error.errno in (ENOSPC, EDQUOT):
        numbers = {}
        try:
            space = statvfs(root)
            numbers = {"free_bytes": space.f_bavail * space.f_frsize, "inodes_free": space.f_favail}
        except OSError:
            pass
        return Failed("insufficient_capacity", f"The disk is full ({error.strerror}): {doing}.", numbers=numbers)
    at = f" at {error.filename}" if isinstance(error.filename, str) and error.filename else ""
    return Failed("storage_error", f"{error.strerror or type(error).__name__}{at}: {doing}.")
