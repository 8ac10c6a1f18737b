"""Small snapshots for tests: plans of given bytes, their files laid out half done or published, and orders for them."""

import hashlib
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from agent import wire
from agent.acquire.disk import publish
from agent.acquire.hub.listing import Listing
from agent.acquire.terms import Plan, PlannedFile

COMMIT = "c0ffee" + "0" * 34
OTHER_COMMIT = "decade" + "0" * 34
JOB = UUID("11111111-2222-4333-8444-555555555555")
ROOT_ID = UUID("99999999-2222-4333-8444-555555555555")
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

Files = Mapping[str, bytes]


def planned(path: str, content: bytes, *, large: bool = False) -> PlannedFile:
    """A file of these bytes, with a SHA-256 where it is a large one."""
    if large:
        return PlannedFile(path, len(content), sha256=hashlib.sha256(content).hexdigest())
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return PlannedFile(path, len(content), git_sha1=blob)


def listing(files: Files, *, commit: str = COMMIT) -> Listing:
    """What the Hub lists for these files; those of safetensors are large."""
    return Listing(
        commit=commit,
        gated=False,
        files=tuple(planned(path, content, large=path.endswith(".safetensors")) for path, content in files.items()),
    )


def plan_of(files: Files, *, repo_id: str = "org/model", commit: str = COMMIT) -> Plan:
    """All these files."""
    found = sorted(listing(files).files, key=lambda file: file.path)
    return Plan(repo_id=repo_id, commit=commit, files=tuple(found))


def order(root: Path | str = "/data/artifacts/r", **changes: Any) -> wire.AcquireOrder:
    """An order for org/model at main."""
    meant: dict[str, Any] = {"root_id": ROOT_ID, "path": str(root), "repo_id": "org/model", "revision": "main"}
    return wire.AcquireOrder(**(meant | changes))


def fetched(root: Path, files: Files, job: UUID = JOB) -> Path:
    """A job's partial folder, with these files verified under their names."""
    partial = root / ".partial" / str(job)
    (partial / "parts").mkdir(parents=True, exist_ok=True)
    (partial / "job.json").write_text("{}")
    for path, content in files.items():
        place = partial / "snapshot" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return partial


def published(root: Path, files: Files, *, job: UUID = JOB, repo_id: str = "org/model", commit: str = COMMIT) -> Path:
    """The folder of a snapshot that was published."""
    plan = plan_of(files, repo_id=repo_id, commit=commit)
    publish.publish(
        plan,
        root=root,
        partial=fetched(root, files, job),
        order=order(root, repo_id=repo_id),
        bytes_fetched=plan.bytes,
        bytes_reused=0,
        now=NOW,
    )
    return root / plan.snapshot


def snapshot_order(kind: type[Any], root: Path, **changes: Any) -> Any:
    """An order about the snapshot of org/model at COMMIT."""
    meant = {
        "root_id": ROOT_ID,
        "path": str(root),
        "snapshot": f"models/org/model/{COMMIT}",
        "repo_id": "org/model",
        "commit": COMMIT,
    }
    return kind(**(meant | changes))


def safetensors(
    tensors: Mapping[str, Any] | None = None, data: bytes = b"\0" * 16, header: bytes | None = None
) -> bytes:
    """A file of that format: one tensor of four floats, unless told otherwise."""
    if header is None:
        described = tensors if tensors is not None else {"w": tensor()}
        header = json.dumps(described).encode()
    return struct.pack("<Q", len(header)) + header + data


def tensor(dtype: str = "F32", shape: Any = (4,), offsets: Any = (0, 16)) -> dict[str, Any]:
    """How a header describes one tensor."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}
