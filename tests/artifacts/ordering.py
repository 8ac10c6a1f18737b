"""A server with a storage root, and the agent on it that claims, tells and ends jobs: for all tests of artifacts."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from agent import wire
from artifacts import claims, orders, progress, results, storage
from artifacts.models import Artifact, Job, StorageRoot
from nodes.callers import Caller, Role
from nodes.models import Heartbeat, Node, Volume
from tests.nodes.hearing import START, a_node, speaker

OPERATOR = Caller(kind="admin_token", role=Role.OPERATOR, id="admin-token", label="admin token", address="192.0.2.1")
TYPES = [wire.ACQUIRE, wire.VERIFY, wire.REMOVE]
ROOT = "/data/artifacts/models"
COMMIT = "c0ffee" + "0" * 34
MANIFEST = "ab" * 32
GIB = 2**30
SECOND = timedelta(seconds=1)


def a_server(name: str = "server01", *, types: list[str] | None = None, filesystem: str = "ext4") -> Node:
    """A node whose agent has told what it can do, and where its artifact volume is; its process has beaten once."""
    node = a_node(name, facts={"agent": {"job_types": TYPES if types is None else types}}, facts_at=START)
    Heartbeat.objects.filter(node=node).update(boot_id=uuid.uuid4(), last_heard_at=START)
    Volume.objects.create(
        node=node, name="artifacts", path="/data/artifacts", filesystem=filesystem, facts={}, seen_at=START
    )
    return node


def a_root(node: Node, path: str = ROOT, *, now: datetime = START, proven: bool = True, **fields: Any) -> StorageRoot:
    """A storage root of the node, proven by its agent unless told otherwise."""
    host = fields.pop("host_path", path.replace("/data", "/mnt/cache/appdata"))
    root = storage.register(node, host_path=host, container_path=path, by=OPERATOR, now=now, **fields)
    if proven:
        Worker(node).claim(now, types=[], proofs=[proof(root, approved=True)])
        root.refresh_from_db()
    return root


def proof(root: StorageRoot, **found: Any) -> wire.RootProof:
    """What an agent finds at the root when all is well, or as told."""
    said: dict[str, Any] = {
        "root_id": root.pk,
        "device_id": "8:1",
        "fsid": "fe01",
        "filesystem": "ext4",
        "mount_point": "/data/artifacts",
        "total_bytes": wire.Reading(value=1000 * GIB),
        "free_bytes": wire.Reading(value=600 * GIB),
        "inodes_free": wire.Reading(value=1_000_000),
    }
    return wire.RootProof(**said | found)


def ordered(root: StorageRoot, repo_id: str = "org/model", *, now: datetime = START, **more: Any) -> Job:
    """A new order of a snapshot."""
    job, _ = orders.acquire(root, repo_id=repo_id, by=OPERATOR, now=now, **more)
    return job


class Worker:
    """The agent of a node, as its control plane hears it: it claims, tells its progress, and ends jobs."""

    def __init__(self, node: Node) -> None:
        self.node = node
        boot_id = Heartbeat.objects.get(node=node).boot_id
        assert boot_id is not None
        self.boot_id = boot_id

    def restart(self) -> "Worker":
        """A new process of the same agent, heard once."""
        Heartbeat.objects.filter(node=self.node).update(boot_id=uuid.uuid4())
        return Worker(self.node)

    def claim(self, now: datetime = START, **said: Any) -> wire.ClaimReply:
        """Ask for work."""
        words: dict[str, Any] = {"boot_id": self.boot_id, "types": TYPES}
        message = wire.Claim(**words | said)
        return claims.claim(message, by=speaker(self.node), now=now)

    def take(self, now: datetime = START) -> wire.Job:
        """Claim the job that must be there."""
        given = self.claim(now).job
        assert given is not None
        return given

    def tell(self, given: wire.Job, now: datetime = START, **said: Any) -> wire.ProgressReply:
        """Say how far the job is."""
        words: dict[str, Any] = {"lease_id": given.lease_id, "phase": "fetch"}
        message = wire.Progress(**words | said)
        return progress.tell(given.id, message, by=speaker(self.node), now=now)

    def finish(self, given: wire.Job, now: datetime = START, **said: Any) -> str:
        """Say how the job ended; where it stands then."""
        words: dict[str, Any] = {"lease_id": given.lease_id}
        message = wire.Result(**words | said)
        return results.finish(given.id, message, by=speaker(self.node), now=now).state

    def fail(self, given: wire.Job, code: wire.FailureCode, now: datetime = START, **more: Any) -> str:
        """Say that the job failed."""
        failure = wire.Failure(code=code, detail=f"because of {code}", **more)
        return self.finish(given, now, outcome="failed", failure=failure)

    def publish(self, given: wire.Job, now: datetime = START, *, commit: str = COMMIT, **more: Any) -> str:
        """Say that the snapshot lies in its root."""
        return self.finish(given, now, outcome="succeeded", commit=commit, published=published(given, commit, **more))


def stored(given: wire.Job) -> Job:
    """The job as it stands."""
    return Job.objects.get(pk=given.id)


def published(given: wire.Job, commit: str = COMMIT, **more: Any) -> wire.Published:
    """What an agent says of the snapshot that it published."""
    order = given.order
    assert isinstance(order, wire.AcquireOrder)
    selection = orders.selection_digest(order.allow_patterns, order.ignore_patterns)
    tail = f".{selection[:12]}" if selection else ""
    said: dict[str, Any] = {
        "snapshot": f"models/{order.repo_id}/{commit}{tail}",
        "files": 3,
        "bytes": 10 * GIB,
        "manifest_sha256": MANIFEST,
        "bytes_fetched": 10 * GIB,
    }
    return wire.Published(**said | more)


def an_artifact(root: StorageRoot, repo_id: str = "org/model", *, now: datetime = START, **more: Any) -> Artifact:
    """A snapshot that was ordered, claimed and published."""
    ordered(root, repo_id, now=now)
    worker = Worker(root.node)
    worker.publish(worker.take(now), now, **more)
    return Artifact.objects.get(root=root, repo_id=repo_id)
