"""Storage roots are revised, approved again and retired."""

from typing import Any

import pytest

from agent.protocol import Code
from artifacts import storage
from artifacts.models import Job, StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Caller
from nodes.models import Node
from tests.artifacts.ordering import GIB, OPERATOR, ROOT, SECOND, Worker, a_root, a_server, ordered
from tests.artifacts.refusals import fields, refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


@pytest.fixture
def node() -> Node:
    """A server whose agent told its volumes."""
    return a_server()


def register(node: Node, by: Caller = OPERATOR, **said: Any) -> StorageRoot:
    """Register the usual folder, or as told."""
    usual = {"host_path": "/mnt/cache/appdata/models", "container_path": ROOT}
    return storage.register(node, **usual | said, by=by, now=START)


def revise(root: StorageRoot, version: int = 1, **changes: Any) -> StorageRoot:
    """Change the root."""
    return storage.revise(root, changes, version=version, by=OPERATOR, now=LATER)


def test_what_operators_say_of_a_root_can_be_revised(node: Node) -> None:
    root = revise(register(node), reserve_bytes=GIB, purpose="lab", host_path="/mnt/disk1/models")
    root.refresh_from_db()
    assert (root.reserve_bytes, root.reserve_percent, root.purpose, root.version) == (GIB, None, "lab", 2)
    changes = events().get(type="storage_root.revised").details["changes"]
    assert changes["reserve_percent"] == {"old": 5, "new": None}
    assert changes["host_path"]["new"] == "/mnt/disk1/models"


def test_a_percentage_takes_the_place_of_bytes(node: Node) -> None:
    root = revise(register(node, reserve_bytes=GIB), reserve_percent=10)
    assert (root.reserve_bytes, root.reserve_percent) == (None, 10)


def test_a_ceiling_can_be_taken_away(node: Node) -> None:
    assert revise(register(node, ceiling_bytes=GIB), ceiling_bytes=None).ceiling_bytes is None


def test_a_revision_that_changes_nothing_leaves_no_trace(node: Node) -> None:
    assert revise(register(node), purpose="artifacts", reserve_percent=5.0).version == 1
    assert told() == ["storage_root.registered"]


def test_a_revision_of_an_older_version_is_refused(node: Node) -> None:
    root = revise(register(node), purpose="lab")
    refused(lambda: revise(root, 1, purpose="other"), Code.PRECONDITION_FAILED)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"container_path": "/data/artifacts/other"}, "container_path"),
        ({"state": "verified"}, "state"),
        ({"reserve_percent": None}, "reserve_bytes"),
        ({"host_path": "/mnt/user/x"}, "host_path"),
        ({"host_path": "/mnt/disk1/b/c"}, "host_path"),
        ({"purpose": 7}, "purpose"),
        ({"ceiling_bytes": "much"}, "ceiling_bytes"),
    ],
    ids=str,
)
def test_an_unfit_revision_is_refused_by_its_field(node: Node, changes: dict[str, Any], field: str) -> None:
    register(node, container_path="/data/artifacts/b", host_path="/mnt/disk1/b")
    root = register(node)
    assert fields(refused(lambda: revise(root, **changes))) == [field]
    root.refresh_from_db()
    assert root.version == 1


def test_a_retired_root_is_revised_no_more(node: Node) -> None:
    root = storage.retire(register(node), reason="gone", by=OPERATOR, now=START)
    refused(lambda: revise(root, purpose="lab"), Code.STATE_CONFLICT)


def test_approving_again_takes_the_folder_as_it_is_now(node: Node) -> None:
    root = storage.approve_again(a_root(node), reason="disk replaced", by=OPERATOR, now=LATER)
    assert (root.state, root.approve) == ("pending", True)
    event = events().filter(type="storage_root.revised").get()
    assert (event.details["approve_again"], event.details["reason"]) == (True, "disk replaced")
    assert event.details["device_id"] == "8:1"
    node.refresh_from_db()
    assert node.work_waits


def test_approving_again_wants_a_reason(node: Node) -> None:
    root = a_root(node)
    assert fields(refused(lambda: storage.approve_again(root, reason="", by=OPERATOR, now=LATER))) == ["reason"]


@pytest.mark.parametrize("verb", [storage.approve_again, storage.retire], ids=["approve", "retire"])
def test_a_root_where_a_job_runs_is_left_alone(node: Node, verb: Any) -> None:
    root = a_root(node)
    job = ordered(root)
    Worker(node).take(START)
    assert str(job.pk) in refused(lambda: verb(root, reason="now", by=OPERATOR, now=LATER), Code.STATE_CONFLICT).detail


def test_retiring_cancels_what_waits_for_the_root(node: Node) -> None:
    root = a_root(node)
    job = ordered(root)
    storage.retire(root, reason="disk removed", by=OPERATOR, now=LATER)
    job.refresh_from_db()
    assert (job.state, job.finished_at, job.cancelled_by) == (Job.State.CANCELLED, LATER, "admin token")
    assert told("job.cancelled", "storage_root.retired") == ["job.cancelled", "storage_root.retired"]
    assert events().get(type="storage_root.retired").details["cancelled_jobs"] == 1


def test_a_retired_root_is_retired_once(node: Node) -> None:
    root = storage.retire(register(node), reason="gone", by=OPERATOR, now=START)
    refused(lambda: storage.retire(root, reason="again", by=OPERATOR, now=LATER), Code.STATE_CONFLICT)


def test_a_root_of_a_disabled_node_can_be_retired(node: Node) -> None:
    root = register(node)
    control.disable(node, reason="maintenance", by=OPERATOR, now=START)
    assert storage.retire(root, reason="gone", by=OPERATOR, now=LATER).state == "retired"
