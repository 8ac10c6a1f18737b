"""Half-done files outlive their root: registered anew, its folder is rid of them, and whoever asked hears of it."""

import pytest

from artifacts import storage
from artifacts.models import Job, StorageRoot
from tests.artifacts.leaving import LATER, ask, look, stopped
from tests.artifacts.ordering import OPERATOR, SECOND, Worker, a_root, proof
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db


@pytest.fixture
def left(root: StorageRoot, worker: Worker) -> Job:
    """A job that failed, and whose files lie there by its agent's word."""
    job = stopped(root, worker)
    look(worker, root, job)
    return job


def test_where_their_root_was_retired_and_registered_anew_nobody_needs_them(
    left: Job, root: StorageRoot, worker: Worker
) -> None:
    assert look(worker, root, left).forget == []
    storage.retire(root, reason="a new reserve", by=OPERATOR, now=LATER)
    again = a_root(root.node)
    assert look(worker, again, left).forget == [left.pk]


def test_what_was_asked_for_before_its_root_was_retired_and_registered_anew_is_told_as_gone_as_well(
    left: Job, root: StorageRoot, worker: Worker
) -> None:
    ask(left)
    storage.retire(root, reason="a new reserve", by=OPERATOR, now=LATER)
    again = a_root(root.node)
    look(worker, again, now=LATER + SECOND, proofs=[proof(again, fault="overdue")])
    assert told("job.forgotten") == []
    assert look(worker, again, left, now=LATER + 2 * SECOND).forget == [left.pk]
    assert look(worker, again, left, now=LATER + 3 * SECOND).forget == [left.pk]
    assert told("job.forgotten") == []
    look(worker, again, now=LATER + 4 * SECOND)
    look(worker, again, now=LATER + 5 * SECOND)
    assert told("job.forget_requested", "job.forgotten") == ["job.forget_requested", "job.forgotten"]


def test_a_new_root_in_another_folder_says_nothing_of_what_lies_in_the_retired_one(
    left: Job, root: StorageRoot, worker: Worker
) -> None:
    ask(left)
    storage.retire(root, reason="sold", by=OPERATOR, now=LATER)
    other = a_root(root.node, "/data/artifacts/another")
    look(worker, other, left, now=LATER + SECOND)
    look(worker, other, now=LATER + 2 * SECOND)
    assert told("job.forgotten") == []
