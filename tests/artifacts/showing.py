"""Storage roots, jobs, artifacts and quarantined files as rows, for the tests of what pages and REST show of them."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from agent import wire
from artifacts.models import Artifact, Job, QuarantinedFile, StorageRoot
from nodes.models import Node

GIB = 2**30
TIB = 2**40
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def a_root(node: Node, now: datetime, folder: str = "models", **fields: Any) -> StorageRoot:
    """A storage root that was proven a minute ago: 2 TiB, half of it free, 5 % to stay so."""
    seen = now - timedelta(minutes=1)
    said = {
        "host_path": f"/mnt/cache/appdata/agent/artifacts/{folder}",
        "container_path": f"/data/artifacts/{folder}",
        "reserve_percent": 5.0,
        "state": StorageRoot.State.VERIFIED,
        "approve": False,
        "device_id": "8:1",
        "fsid": "abc123",
        "filesystem": "ext4",
        "mount_point": "/data/artifacts",
        "total_bytes": 2 * TIB,
        "free_bytes": TIB,
        "inodes_free": 1_000_000,
        "approved_at": now - timedelta(days=2),
        "proven_at": seen,
        "looked_at": seen,
        "created_at": now - timedelta(days=2),
        "created_by": "mara",
    }
    return StorageRoot.objects.create(node=node, **said | fields)


def a_job(root: StorageRoot, now: datetime, **fields: Any) -> Job:
    """A queued order of ``org/model`` at main, five minutes old."""
    state = fields.get("state", Job.State.QUEUED)
    said: dict[str, Any] = {
        "type": wire.ACQUIRE,
        "state": state,
        "repo_id": "org/model",
        "revision": "main",
        "created_at": now - timedelta(minutes=5),
        "created_by": "mara",
    }
    if state != Job.State.QUEUED:
        said |= {"commit": COMMIT, "attempt": 1, "started_at": now - timedelta(minutes=4)}
    if state == Job.State.RUNNING:
        said |= {"lease_id": uuid.uuid4(), "lease_expires_at": now + timedelta(minutes=2), "boot_id": uuid.uuid4()}
        said |= progressed(now)
    if state not in Job.ACTIVE:
        said |= {"finished_at": now - timedelta(minutes=1)}
    if state == Job.State.FAILED:
        said |= {"failure_code": "not_found", "failure_detail": "There is no such repository.", "spent": 1}
    return Job.objects.create(node=root.node, root=root, **said | fields)


def progressed(now: datetime, share: float = 0.25, total: int = 40 * GIB) -> dict[str, Any]:
    """The fields of a job that is so far."""
    done = round(total * share)
    done += 100 * done // total < round(100 * share)  # a byte more, where rounding fell short
    points = 60
    course = [
        [(now - timedelta(seconds=4 * (points - n))).timestamp(), done * n // points, 150.0 * 2**20]
        for n in range(points)
    ]
    return {
        "phase": "fetch",
        "bytes_total": total,
        "bytes_done": done,
        "bytes_fetched": done,
        "files_total": 12,
        "files_done": int(12 * share),
        "bytes_per_second": 150.0 * 2**20,
        "eta_seconds": 205.0,
        "progress_at": now - timedelta(seconds=3),
        "course": [*course, [(now - timedelta(seconds=3)).timestamp(), done, 150.0 * 2**20]],
    }


def an_artifact(root: StorageRoot, now: datetime, **fields: Any) -> Artifact:
    """``org/model`` as it was published an hour ago."""
    said = {
        "repo_id": "org/model",
        "revision": "main",
        "commit": COMMIT,
        "snapshot": f"models/{fields.get('repo_id', 'org/model')}/{fields.get('commit', COMMIT)}",
        "manifest_sha256": "ab" * 32,
        "files": 12,
        "bytes": 40 * GIB,
        "published_at": now - timedelta(hours=1),
        "verified_at": now - timedelta(hours=1),
    }
    return Artifact.objects.create(node=root.node, root=root, **said | fields)


def a_bad_file(root: StorageRoot, now: datetime, job: Job | None = None, **fields: Any) -> QuarantinedFile:
    """A file whose digest was wrong."""
    said = {
        "repo_id": "org/model",
        "commit": COMMIT,
        "path": "model-00001-of-00002.safetensors",
        "size_bytes": 5 * GIB,
        "expected": "11" * 32,
        "found": "22" * 32,
        "reason": "digest_mismatch",
        "location": f"{uuid.uuid4()}/{'22' * 32}",
        "at": now - timedelta(minutes=2),
    }
    return QuarantinedFile.objects.create(node=root.node, root=root, job=job, **said | fields)
