"""A made-up fleet in the database: enrolled nodes with credentials, heard a moment ago, with GPUs."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction

from enrollment import secrets
from enrollment.models import NodeCredential
from nodes.models import Accelerator, BootSession, Heartbeat, Node

BATCH = 5000


@dataclass(frozen=True, slots=True)
class Member:
    """What one agent of the fleet would hold."""

    node_id: uuid.UUID
    boot_id: uuid.UUID
    secret: str


def enlist(size: int, *, now: datetime | None = None, gpus: int = 0, credentials: bool = True) -> list[Member]:
    """Write ``size`` nodes, online as of ``now``, with long deadlines."""
    now = now or datetime.now(UTC)
    members: list[Member] = []
    for start in range(0, size, BATCH):
        batch = range(start, min(start + BATCH, size))
        nodes = [
            Node(display_name=f"server{n:06}", hostname=f"server{n:06}", enrolled_at=now, updated_at=now) for n in batch
        ]
        for node in nodes:
            node.facts_digest, node.agent_version, node.protocol_version = "known", "0.1.0", 1
        hearts = [_heart(node, now) for node in nodes]
        minted = [secrets.mint(secrets.Kind.NODE) for _ in nodes] if credentials else []
        with transaction.atomic():
            Node.objects.bulk_create(nodes)
            Heartbeat.objects.bulk_create(hearts)
            BootSession.objects.bulk_create(
                BootSession(node=heart.node, boot_id=heart.boot_id or heart.node_id, first_heard_at=now)
                for heart in hearts
            )
            NodeCredential.objects.bulk_create(
                NodeCredential(
                    node=node,
                    handle=made.handle,
                    digest=made.digest,
                    last_four=made.last_four,
                    state=NodeCredential.State.ACTIVE,
                    origin=NodeCredential.Origin.ENROLLMENT,
                    issued_at=now,
                    issued_by="bench",
                    first_used_at=now,
                )
                for node, made in zip(nodes, minted, strict=False)
            )
            Accelerator.objects.bulk_create(_gpu(node, index, now) for node in nodes for index in range(gpus))
        texts = [made.text for made in minted] or [""] * len(nodes)
        for heart, text in zip(hearts, texts, strict=True):
            assert heart.boot_id is not None
            members.append(Member(heart.node_id, heart.boot_id, text))
    return members


def _heart(node: Node, now: datetime) -> Heartbeat:
    return Heartbeat(
        node=node,
        liveness="online",
        boot_id=uuid.uuid4(),
        sequence=0,
        last_heard_at=now,
        stale_at=now + timedelta(hours=2),
        offline_at=now + timedelta(hours=4),
        interval_seconds=60,
        clock_skew_seconds=0,
        online_since=now,
    )


def _gpu(node: Node, index: int, now: datetime) -> Accelerator:
    uid = f"GPU-{uuid.uuid4()}"
    return Accelerator(
        node=node,
        key=uid,
        identity="uuid",
        kind="gpu",
        index=index,
        uuid=uid,
        model="NVIDIA RTX 4080",
        pci_bus_id=f"00000000:{index:02X}:00.0",
        memory_bytes=16 * 2**30,
        memory_model="dedicated",
        driver_version="570.1",
        facts={},
        first_seen_at=now,
        last_seen_at=now,
    )
