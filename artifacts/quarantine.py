"""Files whose bytes were not what their repository says: the agent moved them away, and here is the record."""

from collections.abc import Sequence
from datetime import datetime

from agent import wire
from artifacts import subjects
from artifacts.models import Job, QuarantinedFile
from nodes.audit import record_uncounted
from nodes.callers import Caller
from nodes.event_types import EventType

KEPT_OF_A_JOB = 100
NAMED_IN_AN_EVENT = 10


def keep(job: Job, files: Sequence[wire.Quarantined], *, by: Caller, now: datetime) -> None:
    """Keep the records of a job's attempt, in the caller's transaction, and tell them in one event."""
    if not files:
        return
    room = KEPT_OF_A_JOB - QuarantinedFile.objects.filter(job=job).count()
    QuarantinedFile.objects.bulk_create([_row(job, file, now) for file in files[: max(room, 0)]])
    named = [
        {"path": file.path, "expected": file.expected, "found": file.found, "reason": file.reason, "kept": file.kept}
        for file in files[:NAMED_IN_AN_EVENT]
    ]
    told = {"repo_id": job.repo_id, "commit": job.commit, "count": len(files), "files": named}
    record_uncounted(EventType.FILE_QUARANTINED, by=by, about=subjects.job(job), at=now, **told)


def _row(job: Job, file: wire.Quarantined, now: datetime) -> QuarantinedFile:
    return QuarantinedFile(
        node_id=job.node_id,
        root_id=job.root_id,
        job=job,
        repo_id=job.repo_id,
        commit=job.commit,
        path=file.path,
        size_bytes=file.size_bytes,
        expected=file.expected,
        found=file.found,
        reason=file.reason,
        kept=file.kept,
        location=file.location,
        at=now,
    )
