"""How much room a storage root has."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent import wire
from artifacts import capacity, storage
from artifacts.capacity import Capacity
from artifacts.models import Artifact, StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import GIB, OPERATOR, SECOND, Worker, a_root, a_server, an_artifact, ordered, proof
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    """A server."""
    return a_server()


def half_done(root: StorageRoot, repo_id: str = "org/other", **more: Any) -> None:
    """A job of the root that failed in the middle, and waits with 20 GiB still to write."""
    ordered(root, repo_id, **more)
    worker = Worker(root.node)
    given = worker.take(START + SECOND)
    worker.tell(given, START + SECOND, bytes_total=30 * GIB, bytes_done=10 * GIB)
    worker.fail(given, "stalled", START + SECOND)


def test_a_root_that_nobody_measured_has_no_figures(node: Node) -> None:
    root = a_root(node, proven=False, ceiling_bytes=GIB)
    assert capacity.of(root) == Capacity(None, None, None, 0, 0, GIB, GIB)


def test_room_is_what_is_free_less_the_reserve(node: Node) -> None:
    root = a_root(node)
    assert capacity.of(root) == Capacity(
        total_bytes=1000 * GIB,
        free_bytes=600 * GIB,
        reserve_bytes=50 * GIB,
        reserved_bytes=0,
        artifact_bytes=0,
        ceiling_bytes=None,
        room_bytes=550 * GIB,
    )


def test_what_half_done_files_take_is_told_as_their_agent_weighed_it(node: Node) -> None:
    root = a_root(node)
    assert capacity.of(root).partial_bytes is None, "an agent that does not weigh them"
    weighed = proof(root, partial_bytes=wire.Reading(value=20 * GIB))
    Worker(node).claim(START + SECOND, types=[], proofs=[weighed])
    root.refresh_from_db()
    assert capacity.of(root).partial_bytes == 20 * GIB
    assert capacity.of(root).room_bytes == 550 * GIB, "they are not free anyway"


def test_a_reserve_in_bytes_counts_as_it_is(node: Node) -> None:
    assert capacity.of(a_root(node, reserve_bytes=7 * GIB)).room_bytes == 593 * GIB


def test_what_jobs_will_still_write_is_no_room(node: Node) -> None:
    root = a_root(node)
    half_done(root)
    assert (capacity.of(root).reserved_bytes, capacity.of(root).room_bytes) == (20 * GIB, 530 * GIB)


def test_a_preflight_writes_nothing(node: Node) -> None:
    root = a_root(node)
    half_done(root, preflight_only=True)
    assert capacity.of(root).reserved_bytes == 0


def test_roots_on_one_disk_share_its_room(node: Node) -> None:
    root, beside = a_root(node), a_root(node, "/data/artifacts/lab")
    half_done(beside)
    assert capacity.of(root).room_bytes == 530 * GIB


@pytest.mark.parametrize(
    ("other", "reserved"),
    [
        ({"device_id": "8:17", "fsid": "beef"}, 0),
        ({"device_id": "8:17", "fsid": "fe01"}, 20 * GIB),
        ({"device_id": "8:1", "fsid": ""}, 20 * GIB),
        ({"device_id": "8:17", "fsid": ""}, 0),
    ],
    ids=["another", "the same by its id", "the same by its number", "another by its number"],
)
def test_a_disk_is_known_by_its_id_else_by_its_number(node: Node, other: dict[str, str], reserved: int) -> None:
    root, beside = a_root(node), a_root(node, "/data/artifacts/lab", proven=False)
    Worker(node).claim(proofs=[proof(beside, approved=True, **other)])
    beside.refresh_from_db()
    half_done(beside)
    assert capacity.of(root).reserved_bytes == reserved


def test_a_ceiling_counts_what_is_published_and_what_is_coming(node: Node) -> None:
    root = a_root(node, ceiling_bytes=50 * GIB)
    an_artifact(root)
    half_done(root)
    found = capacity.of(root)
    assert (found.artifact_bytes, found.room_bytes) == (10 * GIB, 10 * GIB), "what came already is to stay, too"


def test_room_is_never_less_than_none(node: Node) -> None:
    root = a_root(node, ceiling_bytes=GIB)
    an_artifact(root)
    assert capacity.of(root).room_bytes == 0


def test_what_was_removed_takes_no_room(node: Node) -> None:
    root = a_root(node)
    an_artifact(root)
    Artifact.objects.update(state="removed")
    assert capacity.of(root).artifact_bytes == 0


def test_a_node_shows_all_roots_in_use_at_a_constant_price(node: Node) -> None:
    roots = [a_root(node, f"/data/artifacts/{number}") for number in range(4)]
    storage.retire(roots[0], reason="gone", by=OPERATOR, now=START)
    half_done(roots[1])
    with CaptureQueriesContext(connection) as asked:
        found = capacity.of_node(node)
    assert len(asked) == 3
    assert set(found) == {root.pk for root in roots[1:]}
    assert found[roots[2].pk] == capacity.of(roots[2])


def test_a_retired_root_still_tells_what_lies_there(node: Node) -> None:
    root = a_root(node)
    an_artifact(root)
    storage.retire(root, reason="gone", by=OPERATOR, now=START)
    assert capacity.of(root).artifact_bytes == 10 * GIB
