"""How much room a storage root has: what is free there, what is to stay free, what jobs will still write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Sum

from agent import wire
from artifacts import reserves
from artifacts.models import Artifact, Job, StorageRoot
from nodes.models import Node


@dataclass(frozen=True, slots=True)
class Capacity:
    """Bytes of a root and its file system; None where its agent has not measured them."""

    total_bytes: int | None
    free_bytes: int | None
    reserve_bytes: int | None  # to be left free
    reserved_bytes: int  # still to be written by jobs that have not ended, in all roots of this file system
    artifact_bytes: int  # of what is published in this root
    ceiling_bytes: int | None
    room_bytes: int | None  # what one more job may bring
    partial_bytes: int | None = None  # of what is not free: half-done files of jobs that do not run


def of(root: StorageRoot) -> Capacity:
    """The capacity of one root."""
    others = StorageRoot.objects.filter(node=root.node_id).exclude(state=StorageRoot.State.RETIRED).exclude(pk=root.pk)
    return _of([root, *others], root.node_id)[root.pk]


def of_node(node: Node) -> dict[UUID, Capacity]:
    """The capacity of each root of a node that is in use, by the root's id."""
    return _of(list(StorageRoot.objects.filter(node=node).exclude(state=StorageRoot.State.RETIRED)), node.pk)


def reserved_bytes(root: StorageRoot, roots: Iterable[StorageRoot], jobs: Iterable[Job]) -> int:
    """What these jobs will still write to the file system that the root lies on, as far as they know it."""
    there = {other.pk for other in roots if _shares_disk(root, other)} | {root.pk}
    return sum(to_write(job) for job in jobs if job.root_id in there)


def ceiling_room(root: StorageRoot, artifact_bytes: int, jobs: Iterable[Job]) -> int | None:
    """What the root's ceiling leaves beside its artifacts and what these jobs will bring; None without a ceiling."""
    if root.ceiling_bytes is None:
        return None
    promised = sum(will_bring(job) for job in jobs if job.root_id == root.pk)
    return max(root.ceiling_bytes - artifact_bytes - promised, 0)


def to_write(job: Job) -> int:
    """What a job that has not ended will still write; 0 before it knows."""
    return max(will_bring(job) - job.bytes_done, 0)


def will_bring(job: Job) -> int:
    """What will lie there once the job has ended well, half of which may do so already; 0 before it knows."""
    writes = job.type == wire.ACQUIRE and not job.preflight_only and job.state in Job.ACTIVE
    return job.bytes_total if writes else 0


def artifact_bytes(roots: Iterable[UUID]) -> dict[UUID, int]:
    """Bytes of what is published in each of the roots."""
    kept = Artifact.objects.filter(root__in=roots).exclude(state=Artifact.State.REMOVED).order_by()
    return dict(kept.values_list("root").annotate(sum=Sum("bytes")))


def _of(roots: Sequence[StorageRoot], node_id: UUID) -> dict[UUID, Capacity]:
    jobs = Job.objects.filter(node=node_id, state__in=Job.ACTIVE).defer("course")
    kept, waiting = artifact_bytes(root.pk for root in roots), list(jobs)
    return {root.pk: _capacity(root, roots, waiting, kept.get(root.pk, 0)) for root in roots}


def _capacity(root: StorageRoot, roots: Sequence[StorageRoot], jobs: Sequence[Job], kept: int) -> Capacity:
    reserve, reserved = reserves.in_bytes(root), reserved_bytes(root, roots, jobs)
    left = [] if root.free_bytes is None or reserve is None else [root.free_bytes - reserve - reserved]
    ceiling = ceiling_room(root, kept, jobs)
    if ceiling is not None:
        left.append(ceiling)
    return Capacity(
        total_bytes=root.total_bytes,
        free_bytes=root.free_bytes,
        reserve_bytes=reserve,
        reserved_bytes=reserved,
        artifact_bytes=kept,
        ceiling_bytes=root.ceiling_bytes,
        room_bytes=max(min(left), 0) if left else None,
        partial_bytes=root.partial_bytes,
    )


def _shares_disk(one: StorageRoot, other: StorageRoot) -> bool:
    """By the file system's id; by the device's number, which may change with a restart, where there is none."""
    if one.node_id != other.node_id:
        return False
    if one.fsid.strip("0") and other.fsid.strip("0"):
        return one.fsid == other.fsid
    return bool(one.device_id) and one.device_id == other.device_id
