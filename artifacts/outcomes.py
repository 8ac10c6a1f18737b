"""What a job that succeeded brought: a snapshot, a verification, a removal, or what an order would bring."""

import re
from datetime import datetime
from typing import Any

import msgspec

from agent import wire
from agent.protocol import Code
from agent.wire import FieldError
from artifacts import endings, leases, locks, subjects
from artifacts.models import Artifact, Job
from nodes.audit import record_uncounted
from nodes.callers import Caller, Refused
from nodes.event_types import EventType

MOST_BYTES = 2**50
"""Of one snapshot, so that sums over many stay within what a database counts."""

MOST_FETCHED = 2**60
"""By all attempts of a job together."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


def succeed(job: Job, message: wire.Result, *, by: Caller, now: datetime) -> None:
    """Take what the job brought; its row and its node's are held.

    Raises:
        Refused: ``invalid`` where the result does not say what the order asked for.
    """
    if job.artifact is not None and job.type == wire.VERIFY:
        _verified(job, job.artifact, _said(message.verified, "verified"), by, now)
    elif job.artifact is not None and job.type == wire.REMOVE:
        _removed(job.artifact, by, now, job=job.pk, reason=job.reason)
        endings.end(job, Job.State.SUCCEEDED, by=by, now=now)
    elif job.preflight_only:
        _said(job.commit, "commit")
        preflight = msgspec.to_builtins(_said(message.preflight, "preflight"))
        endings.end(job, Job.State.SUCCEEDED, by=by, now=now, also={"preflight": preflight}, preflight=preflight)
    else:
        _published(job, _said(message.published, "published"), by, now)


def _said(part: Any, field: str) -> Any:
    if not part:
        raise _unfit(field, f"A success of such a job says its {field}.")
    return part


def _unfit(field: str, detail: str) -> Refused:
    return Refused(Code.INVALID, f"{field}: {detail}", errors=[FieldError(field=field, detail=detail)])


def snapshot_of(job: Job) -> str:
    """Where the job's snapshot lies, below its root."""
    tail = f".{job.selection[:12]}" if job.selection else ""
    return f"models/{job.repo_id}/{job.commit}{tail}"


def _published(job: Job, said: wire.Published, by: Caller, now: datetime) -> None:
    """One row for each commit and selection of a root, whichever job brought it."""
    _said(job.commit, "commit")
    if said.snapshot != snapshot_of(job):
        raise _unfit("published.snapshot", f"The snapshot of this order is published as {snapshot_of(job)}.")
    if not _SHA256.fullmatch(said.manifest_sha256):
        raise _unfit("published.manifest_sha256", "Give the SHA-256 of the manifest, 64 hex digits.")
    if said.bytes > MOST_BYTES:
        raise _unfit("published.bytes", "No snapshot is as large as that.")
    fetched = max(job.bytes_fetched, job.bytes_fetched_before + said.bytes_fetched)
    if fetched > MOST_FETCHED:
        raise _unfit("published.bytes_fetched", "All attempts together fetched more than can be.")
    there = Artifact.objects.select_for_update().filter(**_key(job)).first()
    known = there is not None and there.state == Artifact.State.PUBLISHED
    if said.already_present and not said.reread and not known:
        _ask_to_read_it(job, by, now)
        return
    artifact = _artifact(job, there, said, by, now)
    counted = _counted(said.files, said.bytes) | {"artifact": artifact, "bytes_reused": said.bytes_reused}
    told: dict[str, Any] = {"artifact": artifact.pk, "already_present": said.already_present}
    endings.end(job, Job.State.SUCCEEDED, by=by, now=now, also=counted | {"bytes_fetched": fetched}, **told)


def _key(job: Job) -> dict[str, Any]:
    """What makes a snapshot the same."""
    return {"root_id": job.root_id, "repo_id": job.repo_id, "commit": job.commit, "selection": job.selection}


def _counted(files: int, bytes: int) -> dict[str, Any]:
    return {"bytes_total": bytes, "bytes_done": bytes, "files_total": files, "files_done": files}


def _ask_to_read_it(job: Job, by: Caller, now: datetime) -> None:
    """It lies there, but nobody here knows that it is whole: the next attempt is told to read every byte."""
    detail = "The snapshot lay there already, and the agent did not read it, though nothing is known of it here."
    verdict = leases.after_failure("verification_failed", spent=job.spent, most=job.max_attempts)
    if verdict.ends:
        failure = endings.failure("verification_failed", detail)
        also = failure | {"spent": verdict.spent}
        endings.end(job, Job.State.FAILED, by=by, now=now, also=also, **failure, attempt=job.attempt)
    else:
        endings.put_back(job, by=by, now=now, also={"spent": verdict.spent}, counted=False, why="not_reread")


def _artifact(job: Job, there: Artifact | None, said: wire.Published, by: Caller, now: datetime) -> Artifact:
    if there is not None and said.already_present and there.state == Artifact.State.PUBLISHED:
        read = {"verified_at": now} if said.reread else {}
        locks.change(there, revision=job.revision, **read)
        return there
    brought: dict[str, Any] = {
        "revision": job.revision,
        "snapshot": said.snapshot,
        "manifest_sha256": said.manifest_sha256,
        "files": said.files,
        "bytes": said.bytes,
        "state": Artifact.State.PUBLISHED,
        "damaged": [],
        "published_at": now,
        "verified_at": now,
        "removed_at": None,
    }
    if there is None:
        artifact = Artifact.objects.create(node_id=job.node_id, **_key(job) | brought)
    else:
        artifact = there
        locks.change(artifact, **brought)
    told = {"job": job.pk, "snapshot": said.snapshot, "files": said.files, "bytes": said.bytes}
    more = {"revision": job.revision, "manifest_sha256": said.manifest_sha256, "allow_formats": job.allow_formats}
    record_uncounted(EventType.ARTIFACT_PUBLISHED, by=by, about=subjects.artifact(artifact), at=now, **told, **more)
    return artifact


def _verified(job: Job, artifact: Artifact, said: wire.Verified, by: Caller, now: datetime) -> None:
    """Every byte was read again: right, wrong, or not there."""
    if said.missing:
        _removed(artifact, by, now, job=job.pk, found="missing")
    elif said.damaged:
        locks.change(artifact, state=Artifact.State.DAMAGED, damaged=said.damaged)
        told = {"job": job.pk, "damaged": said.damaged[:10], "count": len(said.damaged)}
        record_uncounted(EventType.ARTIFACT_DAMAGED, by=by, about=subjects.artifact(artifact), at=now, **told)
    else:
        locks.change(artifact, state=Artifact.State.PUBLISHED, damaged=[], verified_at=now, removed_at=None)
        told = {"job": job.pk, "files": said.files, "bytes": said.bytes}
        record_uncounted(EventType.ARTIFACT_VERIFIED, by=by, about=subjects.artifact(artifact), at=now, **told)
    verified = msgspec.to_builtins(said)
    also = _counted(said.files, said.bytes) | {"verified": verified}
    endings.end(job, Job.State.SUCCEEDED, by=by, now=now, also=also, missing=said.missing)


def _removed(artifact: Artifact, by: Caller, now: datetime, **told: Any) -> None:
    """It is not there any more; said once."""
    if artifact.state == Artifact.State.REMOVED:
        return
    locks.change(artifact, state=Artifact.State.REMOVED, damaged=[], removed_at=now)
    record_uncounted(EventType.ARTIFACT_REMOVED, by=by, about=subjects.artifact(artifact), at=now, **told)
