"""A result counts once, and only under the lease that counts."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from agent.protocol import Code
from artifacts.models import Artifact, Job, StorageRoot
from nodes import control
from tests.artifacts.ordering import (
    OPERATOR,
    SECOND,
    Worker,
    a_server,
    ordered,
    stored,
)
from tests.artifacts.refusals import refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db
LATER = START + 60 * SECOND


def test_a_result_that_is_told_again_changes_nothing(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    given = worker.take()
    before = [worker.publish(given), told()]
    assert [worker.publish(given, LATER), told()] == before
    assert Artifact.objects.get().published_at == START


def test_a_failure_that_is_told_again_spends_no_other_attempt(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    given = worker.take()
    assert [worker.fail(given, "stalled"), worker.fail(given, "stalled", LATER)] == ["queued", "queued"]
    assert (stored(given).spent, stored(given).not_before) == (1, START + 30 * SECOND)


def test_it_changes_nothing_either_while_the_next_attempt_runs(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    worker.fail(given, "stalled")
    again = worker.take(LATER)
    assert worker.fail(given, "stalled", LATER) == "running"
    assert stored(again).lease_id == again.lease_id


def test_a_late_result_of_an_older_lease_is_refused(worker: Worker, root: StorageRoot) -> None:
    """Field case 76."""
    ordered(root)
    old = worker.take()
    new = worker.restart()
    again = new.take(LATER)
    refused(lambda: worker.publish(old, LATER), Code.LEASE_LOST)
    assert not Artifact.objects.exists()
    new.publish(again, LATER)
    refused(lambda: worker.publish(old, LATER), Code.LEASE_LOST)
    assert Artifact.objects.count() == 1


def test_a_result_after_the_leases_formal_end_counts(worker: Worker, root: StorageRoot, settings: Settings) -> None:
    ordered(root)
    given = worker.take()
    assert worker.publish(given, START + settings.JOB_LEASE + timedelta(hours=3)) == "succeeded"


def test_a_lease_that_never_was_is_lost(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    refused(lambda: worker.finish(given, outcome="released", lease_id=uuid4()), Code.LEASE_LOST)
    Job.objects.all().delete()
    refused(lambda: worker.finish(given, outcome="released"), Code.LEASE_LOST)


def test_another_nodes_result_does_not_count(worker: Worker, root: StorageRoot) -> None:
    ordered(root)
    given = worker.take()
    refused(lambda: Worker(a_server("server02")).publish(given), Code.LEASE_LOST)


@pytest.mark.parametrize(
    ("verb", "code"),
    [(control.disable, Code.NODE_DISABLED), (control.retire, Code.NODE_RETIRED)],
    ids=["disabled", "retired"],
)
def test_a_node_that_was_taken_out_a_moment_ago_tells_no_result(
    worker: Worker, root: StorageRoot, verb: Any, code: Code
) -> None:
    ordered(root)
    given = worker.take()
    verb(root.node, reason="sold", by=OPERATOR, now=START)
    refused(lambda: worker.publish(given), code)
    assert stored(given).state == "running"
