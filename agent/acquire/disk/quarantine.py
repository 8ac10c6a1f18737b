"""Keeps files whose bytes are not what the repository says, away from the models, for people to look at."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

import msgspec

from agent import wire
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Brake, PlannedFile

_CHUNK_BYTES = 1024 * 1024
_MOST_RECORDS = 1000
_RECORD = ".json"
_COPYING = ".copying"

Check = Callable[[], None]
"""Raises where the job is told to stop."""

Reason = Literal["digest_mismatch", "unsafe_format", "damaged"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What lies beside a quarantined file, or in its place."""

    repo: str
    path: str
    size_bytes: int
    expected: str
    found: str
    sha256: str  # of the bytes that were kept, or would have been
    reason: Reason
    kept: bool
    at: datetime


@dataclass(frozen=True)
class Quarantine:
    """A folder on a volume of its own, never mounted into a runtime, bounded in files and bytes."""

    folder: Path
    max_files: int
    max_bytes: int

    def put(
        self,
        job_id: UUID,
        path_on_disk: Path,
        planned_file: PlannedFile,
        found_digest: str,
        reason: Reason,
        repo: str = "",
        *,
        now: datetime | None = None,
        brake: Brake | None = None,
    ) -> wire.Quarantined:
        """Move a file here: copied, flushed, read again, only then taken from where it lay.

        Where there is no room, or the volume refuses, its bytes are deleted all the same and only the record is kept:
        they must never be published. Behind a pulled brake it stays where it lies, half done, for the next attempt.
        """
        check = brake.check if brake is not None else _go_on
        with Tree(path_on_disk.parent) as lying:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            source = os.open(path_on_disk.name, flags, dir_fd=lying.fd)
            try:
                record = Record(
                    repo=repo,
                    path=planned_file.path,
                    size_bytes=os.fstat(source).st_size,
                    expected=planned_file.digest,
                    found=found_digest,
                    sha256="",
                    reason=reason,
                    kept=False,
                    at=now or datetime.now(UTC),
                )
                location = ""
                with suppress(OSError), Tree(self.folder) as tree:
                    record = msgspec.structs.replace(record, sha256=_sha256(source, check))
                    location, record = self._keep(tree, str(job_id), source, record, check)
            finally:
                os.close(source)
            lying.unlink(path_on_disk.name)
        return wire.Quarantined(
            path=record.path,
            size_bytes=record.size_bytes,
            expected=record.expected,
            found=record.found,
            reason=reason,
            kept=record.kept,
            location=location if record.kept else "",
        )

    def _keep(self, tree: Tree, job: str, source: int, record: Record, check: Check) -> tuple[str, Record]:
        """Where the bytes lie now ("": nowhere), and the record as it was written."""
        files, size, records = _held(tree)
        location = f"{job}/{record.sha256}"
        tree.mkdirs(job, mode=0o700)
        kept = tree.stat(location) is not None  # the same bytes came a second time
        if not kept and files < self.max_files and size + record.size_bytes <= self.max_bytes:
            kept = _copied(tree, location, source, record, check)
        record = msgspec.structs.replace(record, kept=kept)
        if records < _MOST_RECORDS + self.max_files:
            try:
                tree.write(location + _RECORD, msgspec.json.encode(record), mode=0o400)
            except OSError:  # bytes that nobody can explain are not kept
                if kept:
                    tree.unlink(location)
                raise
        tree.sync(job)
        tree.sync("")
        return location, record


def _held(tree: Tree) -> tuple[int, int, int]:
    """Files, their bytes, and records that lie here already; what a copy that was broken off left is deleted."""
    files, size, records = 0, 0, 0
    for name, found in list(tree.files("")):
        if name.endswith("/" + _COPYING):
            tree.unlink(name)
        elif name.endswith(_RECORD):
            records += 1
        else:
            files += 1
            size += found.st_size
    return files, size, records


def _copied(tree: Tree, location: str, source: int, record: Record, check: Check) -> bool:
    """Copy, flush, and read the copy again; False, and nothing left of it, where any of that fails."""
    temporary = f"{location.rpartition('/')[0]}/{_COPYING}"
    try:
        copy = tree.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o400)
        try:
            at = 0
            while chunk := os.pread(source, _CHUNK_BYTES, at):
                check()
                view = memoryview(chunk)
                while view:
                    view = view[os.write(copy, view) :]
                at += len(chunk)
            os.fsync(copy)
            # Read from the disk and not from memory, as far as the kernel lets itself be told.
            os.posix_fadvise(copy, 0, 0, os.POSIX_FADV_DONTNEED)
            same = _sha256(copy, check) == record.sha256
        finally:
            os.close(copy)
        if same:
            tree.rename(temporary, location)
            return True
    except OSError:
        pass  # full, or failing: the record alone must do
    finally:
        if tree.stat(temporary) is not None:
            tree.unlink(temporary)
    return False


def _go_on() -> None:
    """Nobody stops it."""


def _sha256(fd: int, check: Check) -> str:
    hasher, at = hashlib.sha256(), 0
    while chunk := os.pread(fd, _CHUNK_BYTES, at):
        check()
        hasher.update(chunk)
        at += len(chunk)
    return hasher.hexdigest()
