"""What an agent finds at its roots: proven, no longer proven, proven again; told once per change."""

from typing import Any

import pytest

from agent import wire
from artifacts import storage
from artifacts.models import StorageRoot
from nodes.audit import events
from nodes.models import Node
from tests.artifacts.ordering import GIB, OPERATOR, SECOND, Worker, a_root, a_server, ordered, proof
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND
ABOUT = ("storage_root.verified", "storage_root.unverified")


@pytest.fixture
def node() -> Node:
    """A server."""
    return a_server()


@pytest.fixture
def pending(node: Node) -> StorageRoot:
    """A root that was registered just now."""
    return a_root(node, proven=False)


@pytest.fixture
def root(node: Node) -> StorageRoot:
    """A root that was proven."""
    return a_root(node)


def prove(root: StorageRoot, now: Any = LATER, **found: Any) -> StorageRoot:
    """The agent of the root's node looks at it, and tells what it found."""
    Worker(root.node).claim(now, types=[], proofs=[proof(root, **found)])
    root.refresh_from_db()
    return root


def test_a_first_proof_verifies_the_root_and_records_its_disk(pending: StorageRoot) -> None:
    root = prove(pending, approved=True)
    assert (root.state, root.approve, root.fault) == ("verified", False, "")
    assert (root.device_id, root.fsid, root.filesystem, root.mount_point) == ("8:1", "fe01", "ext4", "/data/artifacts")
    assert (root.total_bytes, root.free_bytes, root.inodes_free) == (1000 * GIB, 600 * GIB, 1_000_000)
    assert (root.approved_at, root.proven_at, root.looked_at) == (LATER, LATER, LATER)
    event = events().get(type="storage_root.verified")
    assert (event.actor_kind, event.details["device_id"], event.details["approved"]) == ("node", "8:1", True)


def test_a_look_from_before_the_approval_verifies_nothing(pending: StorageRoot) -> None:
    root = prove(pending, approved=False)
    assert (root.state, root.approve, root.total_bytes) == ("pending", True, 1000 * GIB)
    assert told(*ABOUT) == []


def test_a_root_that_cannot_be_proven_says_why_and_may_be_later(pending: StorageRoot) -> None:
    root = prove(pending, fault="missing", detail="no such folder")
    assert (root.state, root.approve, root.fault, root.fault_detail) == (
        "unverified",
        True,
        "missing",
        "no such folder",
    )
    assert prove(root, approved=True).state == "verified"
    assert told(*ABOUT) == ["storage_root.unverified", "storage_root.verified"]


@pytest.mark.parametrize("fault", ["marker_missing", "device_changed", "fuse", "not_mounted", "overdue"])
def test_a_fault_takes_the_proof_back(root: StorageRoot, fault: wire.RootFault) -> None:
    """Field case 59."""
    found = prove(root, fault=fault, detail="look at it")
    assert (found.state, found.fault, found.proven_at) == ("unverified", fault, START)
    event = events().get(type="storage_root.unverified")
    assert (event.details["fault"], event.details["detail"]) == (fault, "look at it")


def test_a_fault_is_told_once_however_often_it_is_seen(root: StorageRoot) -> None:
    for second in range(3):
        prove(root, LATER + second * SECOND, fault="marker_missing", detail=f"seen {second}")
    assert root.fault_detail == "seen 2"
    assert told("storage_root.unverified") == ["storage_root.unverified"]


def test_another_fault_is_told_as_well(root: StorageRoot) -> None:
    prove(root, fault="marker_missing")
    prove(root, fault="overdue")
    assert told("storage_root.unverified") == ["storage_root.unverified"] * 2


def test_a_root_that_is_proven_again_is_verified_again(root: StorageRoot) -> None:
    prove(root, fault="marker_missing")
    again = prove(root)
    assert (again.state, again.fault, again.fault_detail) == ("verified", "", "")
    assert told(*ABOUT)[-2:] == ["storage_root.unverified", "storage_root.verified"]
    assert events().filter(type="storage_root.verified").first().details["approved"] is False  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ({"device_id": "8:17"}, "verified"),
        ({"fsid": "beef"}, "verified"),
        ({"device_id": "8:17", "fsid": "beef"}, "unverified"),
        ({"device_id": "8:17", "fsid": ""}, "unverified"),
    ],
    ids=["another number", "another id", "both", "another number, no id"],
)
def test_another_disk_is_seen_by_number_and_id_together(root: StorageRoot, found: dict[str, str], state: str) -> None:
    prove(root, **found)
    assert (root.state, root.fault) == (state, "device_changed" if state == "unverified" else "")
    assert (root.device_id, root.fsid) == ("8:1", "fe01")


def test_on_a_file_system_without_an_id_the_number_decides(node: Node) -> None:
    root = prove(a_root(node, proven=False), approved=True, fsid="0")
    assert prove(root, fsid="0").state == "verified"
    assert prove(root, fsid="0", device_id="8:17").state == "unverified"


def test_a_share_that_the_agent_did_not_mind_is_refused_all_the_same(pending: StorageRoot) -> None:
    """Field case 60."""
    root = prove(pending, approved=True, filesystem="fuse.shfs")
    assert (root.state, root.fault) == ("unverified", "fuse")
    assert "/mnt/cache" in root.fault_detail


def test_figures_change_without_a_word_in_the_history(root: StorageRoot) -> None:
    before = told()
    assert prove(root, free_bytes=wire.Reading(value=GIB)).free_bytes == GIB
    assert prove(root, free_bytes=wire.Reading(reason="error", code=5)).free_bytes is None
    assert (told(), root.proven_at) == (before, LATER)


def test_a_folder_that_was_approved_again_is_taken_with_its_new_disk(root: StorageRoot) -> None:
    storage.approve_again(root, reason="disk replaced", by=OPERATOR, now=LATER)
    found = prove(root, approved=True, device_id="8:17", fsid="beef")
    assert (found.state, found.device_id, found.fsid, found.approved_at) == ("verified", "8:17", "beef", LATER)


def test_an_agent_is_told_to_take_the_folder_only_until_it_did(pending: StorageRoot) -> None:
    worker = Worker(pending.node)
    (asked,) = worker.claim(START).roots
    assert (asked.root_id, asked.approve, asked.device_id) == (pending.pk, True, "")
    (watched,) = worker.claim(START, proofs=[proof(pending, approved=True)]).roots
    assert (watched.approve, watched.device_id, watched.fsid) == (False, "8:1", "fe01")


def test_nobody_proves_another_nodes_root(root: StorageRoot) -> None:
    Worker(a_server("server02")).claim(LATER, proofs=[proof(root, fault="missing")])
    root.refresh_from_db()
    assert (root.state, root.looked_at) == ("verified", START)


def test_a_retired_root_is_proven_no_more(root: StorageRoot) -> None:
    storage.retire(root, reason="gone", by=OPERATOR, now=START)
    assert prove(root).state == "retired"
    assert Worker(root.node).claim(LATER).roots == []


def test_a_root_that_is_proven_again_is_worked_in_with_the_same_claim(root: StorageRoot) -> None:
    job = ordered(root)
    prove(root, fault="marker_missing")
    worker = Worker(root.node)
    assert worker.claim(LATER).job is None
    given = worker.claim(LATER, proofs=[proof(root)]).job
    assert given is not None
    assert given.id == job.pk
