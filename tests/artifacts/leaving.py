"""Jobs that end without success and leave half-done files, and what the agent says of these."""

from datetime import datetime
from typing import Any

from agent import wire
from artifacts import half_done
from artifacts.models import HalfDone, Job, StorageRoot
from tests.artifacts.ordering import COMMIT, GIB, OPERATOR, SECOND, Worker, ordered, proof
from tests.nodes.hearing import START

LATER = START + 60 * SECOND
WEIGHT = 10 * GIB


def stopped(root: StorageRoot, worker: Worker, repo_id: str = "org/model", **more: Any) -> Job:
    """A job that failed in the middle, for want of room."""
    job = ordered(root, repo_id, **more)
    given = worker.take()
    worker.tell(given, commit=COMMIT, bytes_total=30 * GIB, bytes_done=WEIGHT)
    worker.fail(given, "insufficient_capacity")
    job.refresh_from_db()
    return job


def look(worker: Worker, root: StorageRoot, *lying: Job, now: datetime = LATER, **said: Any) -> wire.ClaimReply:
    """A claim whose agent has looked through the root, and found the half-done files of these jobs."""
    weights = {job.pk: WEIGHT for job in lying}
    found = proof(root, partial_bytes=wire.Reading(value=sum(weights.values())))
    words: dict[str, Any] = {"types": [], "proofs": [found], "partials": list(weights), "weights": weights}
    return worker.claim(now, **words | said)


def ask(job: Job, now: datetime = LATER) -> Job:
    """Give the room back now."""
    return half_done.forget(job, reason="the disk is full", by=OPERATOR, now=now)


def asked(job: Job) -> HalfDone:
    """What is known of its files."""
    return HalfDone.objects.get(pk=job.pk)
