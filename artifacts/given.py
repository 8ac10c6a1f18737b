"""Jobs and storage roots as an agent is told of them."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from agent import wire
from artifacts import capacity, reserves
from artifacts.models import Artifact, Job, StorageRoot

MOST_REPLACED = 32  # the bound on the wire

Order = wire.AcquireOrder | wire.VerifyOrder | wire.RemoveOrder


def roots(roots: Sequence[StorageRoot]) -> list[wire.RootOrder]:
    """A node's roots to prove and watch, with what was recorded when they were approved.

    One that waits for that names the retired roots of the same folder: their marker no longer counts.
    """
    retired = _retired([root for root in roots if root.approve])
    return [
        wire.RootOrder(
            root_id=root.pk,
            path=root.container_path,
            approve=root.approve,
            device_id="" if root.approve else root.device_id,
            fsid="" if root.approve else root.fsid,
            replaces=retired.get(root.container_path, [])[:MOST_REPLACED] if root.approve else [],
        )
        for root in roots
    ]


def _retired(waiting: Sequence[StorageRoot]) -> dict[str, list[UUID]]:
    """The retired roots by folder, the newest first."""
    if not waiting:
        return {}
    over = StorageRoot.objects.filter(
        node=waiting[0].node_id,
        state=StorageRoot.State.RETIRED,
        container_path__in=[root.container_path for root in waiting],
    )
    found: dict[str, list[UUID]] = {}
    for path, key in over.order_by("-retired_at").values_list("container_path", "pk"):
        found.setdefault(path, []).append(key)
    return found


def job(job: Job, order: Order) -> wire.Job:
    """A job that runs, under its lease."""
    if job.lease_id is None:
        raise ValueError(f"the job {job.pk} runs under no lease")
    return wire.Job(
        id=job.pk,
        attempt=job.attempt,
        lease_id=job.lease_id,
        lease_seconds=settings.JOB_LEASE.total_seconds(),
        order=order,
    )


def order(
    job: Job, root: StorageRoot, roots: Iterable[StorageRoot], jobs: Sequence[Job], partials: Sequence[UUID]
) -> Order:
    """What the job is about; ``roots`` and ``jobs`` are all of its node, for the room that they take.

    ``partials`` are the jobs whose half-done files are kept there.
    """
    if job.artifact is None or job.type == wire.ACQUIRE:
        return _acquire(job, root, roots, [other for other in jobs if other.pk != job.pk], partials)
    kind = wire.VerifyOrder if job.type == wire.VERIFY else wire.RemoveOrder
    return kind(**_snapshot(job.artifact, root))


def _acquire(
    job: Job, root: StorageRoot, roots: Iterable[StorageRoot], others: Sequence[Job], partials: Sequence[UUID]
) -> wire.AcquireOrder:
    kept = capacity.artifact_bytes([root.pk]).get(root.pk, 0) if root.ceiling_bytes is not None else 0
    return wire.AcquireOrder(
        root_id=root.pk,
        path=root.container_path,
        repo_id=job.repo_id,
        revision=job.revision,
        commit=job.commit,
        allow_patterns=job.allow_patterns,
        ignore_patterns=job.ignore_patterns,
        allow_formats=job.allow_formats,
        preflight_only=job.preflight_only,
        reread=not _is_whole(job),
        reserve_bytes=reserves.in_bytes(root) or 0,
        reserved_bytes=capacity.reserved_bytes(root, roots, others),
        room_bytes=capacity.ceiling_room(root, kept, others),
        expendable=_expendable(job, partials),
    )


def _expendable(job: Job, partials: Sequence[UUID]) -> list[UUID]:
    """Jobs whose half-done files in the root may be used by this one, those that ended first coming first.

    They were cancelled, or failed and this order of the same took their place: nobody wants them now, so that they are
    kept for another try only as long as their room is not needed.
    """
    if not partials:
        return []
    replaced = Q(state=Job.State.FAILED, repo_id=job.repo_id, revision=job.revision, selection=job.selection)
    found = Job.objects.filter(replaced | Q(state=Job.State.CANCELLED), root=job.root_id, pk__in=partials)
    return list(found.order_by("finished_at", "id").values_list("pk", flat=True)[: wire.MAX_PARTIALS])


def _is_whole(job: Job) -> bool:
    """Whether the snapshot that the job may mean is known to be whole; that it is there proves nothing else."""
    there = Artifact.objects.filter(root=job.root_id, repo_id=job.repo_id, selection=job.selection)
    if job.commit:
        there = there.filter(commit=job.commit)
    states = set(there.order_by().values_list("state", flat=True))
    return Artifact.State.PUBLISHED in states and Artifact.State.DAMAGED not in states


def _snapshot(artifact: Artifact, root: StorageRoot) -> dict[str, Any]:
    return {
        "root_id": root.pk,
        "path": root.container_path,
        "snapshot": artifact.snapshot,
        "repo_id": artifact.repo_id,
        "commit": artifact.commit,
        "manifest_sha256": artifact.manifest_sha256,
    }
