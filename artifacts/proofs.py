"""What an agent found at its storage roots: it proves them, or it takes the proof back; told once per change."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from agent import wire
from artifacts import paths, subjects
from artifacts.models import HalfDone, StorageRoot
from nodes.audit import Entry, record_many
from nodes.callers import Caller
from nodes.event_types import EventType
from nodes.models import Node

_FIELDS = (
    "state",
    "approve",
    "fault",
    "fault_detail",
    "device_id",
    "fsid",
    "filesystem",
    "mount_point",
    "total_bytes",
    "free_bytes",
    "inodes_free",
    "partial_bytes",
    "approved_at",
    "proven_at",
    "looked_at",
)

_FUSE = "A FUSE share lies about locks, links and space. Register the pool or disk itself, such as /mnt/cache/..."
_OTHER_DISK = "The folder lies on another disk than the approved one. Mount that one again, or approve this one."


def take(node: Node, proofs: Iterable[wire.RootProof], *, by: Caller, now: datetime) -> list[StorageRoot]:
    """Take the proofs of a node's agent, in the caller's transaction; a root of another node is none of its business.

    Args:
        node: its row, held.

    Returns:
        All roots of the node that are in use, held, as they stand now; with ``holds_half_done``: whether anything is
        known to lie there that a job left half done.
    """
    live = StorageRoot.objects.select_for_update().filter(node=node).exclude(state=StorageRoot.State.RETIRED)
    roots: list[StorageRoot] = list(
        live.annotate(holds_half_done=Exists(HalfDone.objects.filter(root=OuterRef("pk"), gone_at=None)))
    )
    of_each = {proof.root_id: proof for proof in proofs}
    looked, entries = [], []
    for root in roots:
        proof = of_each.get(root.pk)
        if proof is None:
            continue
        looked.append(root)
        event = _look(root, proof, now)
        if event is not None:
            entries.append(Entry(event, by, subjects.root(root), now, _told(root, proof)))
    if looked:
        StorageRoot.objects.bulk_update(looked, _FIELDS)
    record_many(entries)
    return roots


def _look(root: StorageRoot, proof: wire.RootProof, now: datetime) -> EventType | None:
    """Write into the root what was found there; the event that tells it, where it is news."""
    root.looked_at = now
    fault, detail = _fault(root, proof)
    if fault is not None:
        known = root.state == StorageRoot.State.UNVERIFIED and root.fault == fault
        root.state, root.fault, root.fault_detail = StorageRoot.State.UNVERIFIED, fault, detail
        return None if known else EventType.ROOT_UNVERIFIED
    root.filesystem, root.mount_point = proof.filesystem, proof.mount_point
    root.total_bytes, root.free_bytes = proof.total_bytes.value, proof.free_bytes.value
    root.inodes_free, root.partial_bytes = proof.inodes_free.value, proof.partial_bytes.value
    if root.approve:
        if not proof.approved:
            return None  # looked at before it was told to take the folder as it is now
        root.approve, root.approved_at = False, now
        root.device_id, root.fsid = proof.device_id, proof.fsid
    known = root.state == StorageRoot.State.VERIFIED
    root.state, root.fault, root.fault_detail, root.proven_at = StorageRoot.State.VERIFIED, "", "", now
    return None if known else EventType.ROOT_VERIFIED


def _fault(root: StorageRoot, proof: wire.RootProof) -> tuple[wire.RootFault | None, str]:
    """What is wrong, as the agent says or as what it says shows."""
    if proof.fault is not None:
        return proof.fault, proof.detail
    if paths.is_fuse(proof.filesystem):
        return "fuse", f"{proof.filesystem}: {_FUSE}"
    if not root.approve and _is_other_disk(root, proof):
        return "device_changed", _OTHER_DISK
    return None, ""


def _is_other_disk(root: StorageRoot, proof: wire.RootProof) -> bool:
    """Device numbers may change with a restart, and not every file system has an id; both changed is another disk."""
    if root.device_id == proof.device_id:
        return False
    return root.fsid != proof.fsid or not proof.fsid.strip("0")


def _told(root: StorageRoot, proof: wire.RootProof) -> dict[str, Any]:
    if root.fault:
        return {"fault": root.fault, "detail": root.fault_detail, "device_id": proof.device_id, "fsid": proof.fsid}
    names = ("device_id", "fsid", "filesystem", "mount_point", "total_bytes", "free_bytes")
    return {name: getattr(root, name) for name in names} | {"approved": proof.approved}
