"""What a server is: host, agent, GPUs and volumes, told rarely and whole."""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from agent.wire.values import (
    MAX_DEVICES,
    MAX_VOLUMES,
    Bytes,
    Count,
    Instant,
    Key,
    Name,
    Number,
    Reading,
    Text,
    Version,
    encode,
)


class HostFacts(Struct, frozen=True, kw_only=True):
    """The agent's Linux execution environment: what the host shows, and what the container's limits leave."""

    hostname: Name
    os: Text
    kernel: Text
    architecture: Text
    cpu_model: Reading[Text]
    cpu_visible: Reading[Count]  # logical processors that the host shows
    cpu_limit: Reading[Number]  # processors that the cgroup quota and affinity leave; unsupported: no limit set
    memory_visible_bytes: Reading[Bytes]
    memory_limit_bytes: Reading[Bytes]  # the tightest cgroup limit; unsupported: no limit set
    swap_bytes: Reading[Bytes]
    limits_source: Text = ""  # "cgroup v2", "cgroup v1" or "" where neither was readable
    booted_at: Instant | None = None
    container: bool = False


class AgentFacts(Struct, frozen=True, kw_only=True):
    """How this agent runs; what an operator should see at a glance when it is unsafe."""

    version: Version
    protocol: Count
    python: Version
    started_at: Instant
    tls_verify: bool  # False is shown as a warning on the node's page
    ca: Literal["system", "file", "none"] = "system"
    proxy: bool = False
    state_ephemeral: bool = False  # the state folder is no mount, and the operator allowed it
    job_types: Annotated[list[Key], Meta(max_length=16)] = []  # what this agent can be ordered to do


class GpuRuntime(Struct, frozen=True, kw_only=True):
    """NVML as this agent finds it: ready, absent (no library, no driver: not an error), or failed with its code."""

    state: Literal["ready", "absent", "failed"]
    code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    message: Text = ""
    driver_version: Reading[Text] = Reading(reason="unsupported")
    cuda_version: Reading[Text] = Reading(reason="unsupported")  # the newest that the driver supports, "13.0"
    nvml_version: Reading[Text] = Reading(reason="unsupported")
    pci_devices: Reading[Count] = Reading(reason="unsupported")  # NVIDIA GPUs that the PCI bus shows


class AcceleratorFacts(Struct, frozen=True, kw_only=True):
    """One GPU or MIG instance."""

    key: Key  # the identity: the UUID, or "pci:<bus id>" / "index:<n>" where the UUID is missing or a duplicate
    identity: Literal["uuid", "pci_bus_id", "index"] = "uuid"
    kind: Literal["gpu", "mig"] = "gpu"
    index: Count
    parent: Key | None = None  # key of the GPU that a MIG instance lives on
    uuid: Reading[Text]
    model: Reading[Text]
    pci_bus_id: Reading[Text]
    memory_bytes: Reading[Bytes]
    memory_model: Literal["dedicated", "unified"] = "dedicated"  # unified: the GPU shares the host's memory
    compute_capability: Reading[Text]  # "9.0"
    mig_enabled: Reading[bool]
    power_limit_watts: Reading[Number]


class VolumeFacts(Struct, frozen=True, kw_only=True):
    """One of the named data volumes."""

    name: Name  # "state", "hf-cache", "artifacts" or "quarantine"
    path: Annotated[str, Meta(min_length=1, max_length=4096)]  # inside the agent's environment
    is_mount: Reading[bool]
    filesystem: Reading[Text]  # "ext4", "fuse.shfs", ...
    device_id: Reading[Text]  # st_dev as "major:minor"
    writable: Reading[bool]
    total_bytes: Reading[Bytes]
    free_bytes: Reading[Bytes]  # what an unprivileged writer may still use
    inodes_total: Reading[Count]
    inodes_free: Reading[Count]


class Facts(Struct, frozen=True, kw_only=True):
    """Body of ``PUT agent/facts``: large and rare (at start, on change, or when the beat's reply asks)."""

    boot_id: UUID
    observed_at: Instant
    host: HostFacts
    agent: AgentFacts
    gpu_runtime: GpuRuntime
    accelerators: Annotated[list[AcceleratorFacts], Meta(max_length=MAX_DEVICES)] = []
    volumes: Annotated[list[VolumeFacts], Meta(max_length=MAX_VOLUMES)] = []


def digest(facts: Facts) -> str:
    """SHA-256 (hex) over what the facts say; equal digests mean that nothing changed.

    Left out: when and by which process they were observed, and free space and the number of inodes, which change
    with every look (XFS counts the inodes that would fit) and belong to telemetry.
    """
    unread: Reading[Any] = Reading(reason="unsupported")
    steady = msgspec.structs.replace(
        facts,
        boot_id=UUID(int=0),
        observed_at=_EPOCH,
        agent=msgspec.structs.replace(facts.agent, started_at=_EPOCH),
        volumes=[
            msgspec.structs.replace(v, free_bytes=unread, inodes_total=unread, inodes_free=unread)
            for v in facts.volumes
        ],
    )
    return hashlib.sha256(encode(steady)).hexdigest()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
