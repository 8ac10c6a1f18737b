"""Every message that crosses the wire, with its bounds; both ends encode and decode with these types and no others.

Bytes are bytes, times are aware UTC (RFC 3339), durations are seconds; a field's name says its unit. Every measured
value is a ``Reading``: a value *or* the reason why there is none, never 0 for "unknown". Unknown fields are ignored,
so that a newer agent of the same protocol version can say more. ``msgspec.ValidationError`` names the field
(``$.sequence``) that is out of shape.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

T = TypeVar("T")
M = TypeVar("M")

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=255)]
Key = Annotated[str, Meta(min_length=1, max_length=128)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Bytes = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Instant = Annotated[datetime, Meta(tz=True)]
Seconds = Annotated[float, Meta(ge=0, le=10**9)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]

Reason = Literal["unsupported", "denied", "lost", "error"]
"""Why there is no value: the device has none, we may not ask, the device fell off, or the call failed."""

MAX_DEVICES = 256  # GPUs and MIG instances of one node
MAX_VOLUMES = 32


class Reading(Struct, Generic[T], frozen=True, omit_defaults=True):
    """A measured value, or the reason why there is none (``code``: the NVML or errno number behind it)."""

    value: T | None = None
    reason: Reason | None = None
    code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a reading holds a value or a reason, not both and not neither")


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


class HostTelemetry(Struct, frozen=True, kw_only=True):
    """How loaded the environment is."""

    cpu_percent: Reading[Number]  # 0..100 over all processors that may be used, since the sample before
    load_1m: Reading[Number]
    memory_used_bytes: Reading[Bytes]
    memory_available_bytes: Reading[Bytes]


class AcceleratorTelemetry(Struct, frozen=True, kw_only=True):
    """How loaded and how well one GPU or MIG instance is; ``key`` as in ``AcceleratorFacts``."""

    key: Key
    utilization_percent: Reading[Number]
    memory_used_bytes: Reading[Bytes]
    memory_free_bytes: Reading[Bytes]
    temperature_celsius: Reading[Number]
    power_watts: Reading[Number]
    clock_sm_mhz: Reading[Number]
    clock_memory_mhz: Reading[Number]
    fan_percent: Reading[Number]
    throttle_reasons: Reading[Annotated[list[Text], Meta(max_length=32)]]  # [] is "none"
    ecc_corrected: Reading[Count]  # since the driver was loaded
    ecc_uncorrected: Reading[Count]
    processes: Reading[Count]


class VolumeTelemetry(Struct, frozen=True, kw_only=True):
    """How full one named volume is."""

    name: Name
    free_bytes: Reading[Bytes]


class Telemetry(Struct, frozen=True, kw_only=True):
    """One sample of everything that is measured over time."""

    at: Instant  # by the agent's clock; the control plane dates the sample by its own
    host: HostTelemetry
    gpu_runtime: Literal["ready", "absent", "failed"]
    accelerators: Annotated[list[AcceleratorTelemetry], Meta(max_length=MAX_DEVICES)] = []
    volumes: Annotated[list[VolumeTelemetry], Meta(max_length=MAX_VOLUMES)] = []

    def __post_init__(self) -> None:
        if len({device.key for device in self.accelerators}) < len(self.accelerators):
            raise ValueError("an accelerator's key stands twice; each has its own")


class Enroll(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/enroll``; the one-time token travels as ``Authorization: Bearer mfe_...``."""

    node_id: UUID  # minted by the agent, kept in its state volume
    boot_id: UUID
    hostname: Name
    agent_version: Version
    display_name: Annotated[str, Meta(max_length=255)] = ""  # used where the invitation names none


class Enrolled(Struct, frozen=True, kw_only=True):
    """Answer to ``Enroll``: the node-scoped credential, told this once."""

    node_id: UUID
    credential: str
    display_name: str
    heartbeat_interval_seconds: Seconds


class Beat(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/heartbeat``: small and frequent."""

    boot_id: UUID  # new at every process start
    sequence: Count  # grows by one a beat within a boot id, from 1
    sent_at: Instant  # by the agent's clock: data for the skew, never for a decision
    agent_version: Version
    facts_digest: Annotated[str, Meta(max_length=64)] = ""  # of the facts that the agent holds; "" before the first
    telemetry: Telemetry | None = None  # sent when the last reply's telemetry interval has passed


class BeatReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Beat``: what the node is told to do next."""

    heartbeat_interval_seconds: Seconds
    telemetry_interval_seconds: Seconds
    want_facts: bool = False
    renew_credential: bool = False


class FactsReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Facts``."""

    facts_digest: str
    changed: bool


class CredentialReply(Struct, frozen=True, kw_only=True):
    """Answer to ``POST agent/credential`` (empty body): the new credential, told this once."""

    credential: str
    old_dies_at: Instant


class Goodbye(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/goodbye``: a planned stop reads as one."""

    boot_id: UUID
    reason: Annotated[str, Meta(max_length=128)] = "stopped"


class FieldError(Struct, frozen=True, kw_only=True):
    """One field at fault, with what to do about it."""

    field: str
    detail: str


class Problem(Struct, frozen=True, kw_only=True):
    """Every error's body: RFC 9457 ``application/problem+json`` with a stable ``code``."""

    status: int
    code: str
    title: str = ""
    detail: str = ""
    type: str = "about:blank"
    request_id: str = ""
    retryable: bool = False
    errors: list[FieldError] = []
    protocols: list[int] = []  # the versions spoken, told with protocol_unsupported


encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


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
