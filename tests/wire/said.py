"""What the golden samples in ``v1`` say, field by field: the meaning that version 1 of the protocol has for ever."""

from datetime import UTC, datetime
from uuid import UUID

from msgspec import Struct

from agent import wire
from agent.wire import Reading

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
BOOT = UUID("0b0a7c1e-5a55-4d7b-9a39-9f6f35e1b001")
AT = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
STARTED = datetime(2026, 3, 1, 11, 0, tzinfo=UTC)
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

HOST = wire.HostFacts(
    hostname="server01",
    os="Debian GNU/Linux 12 (bookworm)",
    kernel="6.1.0-28-amd64",
    architecture="x86_64",
    cpu_model=Reading(value="AMD EPYC 9354"),
    cpu_visible=Reading(value=64),
    cpu_limit=Reading(value=7.5),
    memory_visible_bytes=Reading(value=540_000_000_000),
    memory_limit_bytes=Reading(reason="unsupported"),
    swap_bytes=Reading(value=0),
    limits_source="cgroup v2",
    booted_at=STARTED,
    container=True,
)
AGENT = wire.AgentFacts(
    version="0.1.0",
    protocol=1,
    python="3.13.1",
    started_at=STARTED,
    tls_verify=False,
    ca="none",
    proxy=True,
    state_ephemeral=True,
)
RUNTIME = wire.GpuRuntime(
    state="failed",
    code=18,
    message="NVML: Driver/library version mismatch",
    driver_version=Reading(value="570.133.20"),
    cuda_version=Reading(value="13.0"),
    nvml_version=Reading(reason="error", code=18),
    pci_devices=Reading(value=2),
)
GPU = wire.AcceleratorFacts(
    key="GPU-5a3c",
    identity="uuid",
    kind="gpu",
    index=0,
    parent=None,
    uuid=Reading(value="GPU-5a3c"),
    model=Reading(value="NVIDIA H200"),
    pci_bus_id=Reading(value="00000000:17:00.0"),
    memory_bytes=Reading(value=150_754_820_096),
    memory_model="dedicated",
    compute_capability=Reading(value="9.0"),
    mig_enabled=Reading(value=True),
    power_limit_watts=Reading(reason="denied", code=4),
)
MIG = wire.AcceleratorFacts(
    key="pci:00000000:17:00.0/0",
    identity="pci_bus_id",
    kind="mig",
    index=1,
    parent="GPU-5a3c",
    uuid=Reading(reason="lost", code=15),
    model=Reading(reason="error", code=999),
    pci_bus_id=Reading(value="00000000:17:00.0"),
    memory_bytes=Reading(reason="unsupported", code=3),
    memory_model="unified",
    compute_capability=Reading(value="9.0"),
    mig_enabled=Reading(value=False),
    power_limit_watts=Reading(value=700),
)
VOLUME = wire.VolumeFacts(
    name="state",
    path="/data/state",
    is_mount=Reading(value=True),
    filesystem=Reading(value="ext4"),
    device_id=Reading(value="8:1"),
    writable=Reading(value=True),
    total_bytes=Reading(value=2_000_000_000_000),
    free_bytes=Reading(reason="error", code=5),
    inodes_total=Reading(value=1_000_000),
    inodes_free=Reading(value=999_000),
)
TELEMETRY = wire.Telemetry(
    at=AT,
    host=wire.HostTelemetry(
        cpu_percent=Reading(value=12.5),
        load_1m=Reading(value=0.75),
        memory_used_bytes=Reading(value=4_000_000_000),
        memory_available_bytes=Reading(value=60_000_000_000),
    ),
    gpu_runtime="ready",
    accelerators=[
        wire.AcceleratorTelemetry(
            key="GPU-5a3c",
            utilization_percent=Reading(value=0),
            memory_used_bytes=Reading(value=1024),
            memory_free_bytes=Reading(value=150_754_819_072),
            temperature_celsius=Reading(value=41),
            power_watts=Reading(value=76.25),
            clock_sm_mhz=Reading(value=345),
            clock_memory_mhz=Reading(value=2619),
            fan_percent=Reading(reason="unsupported", code=3),
            throttle_reasons=Reading(value=["gpu_idle"]),
            ecc_corrected=Reading(value=0),
            ecc_uncorrected=Reading(reason="lost", code=15),
            processes=Reading(value=2),
        )
    ],
    volumes=[wire.VolumeTelemetry(name="state", free_bytes=Reading(value=1_500_000_000_000))],
)

SAID: dict[str, Struct] = {
    "enroll": wire.Enroll(
        node_id=NODE, boot_id=BOOT, hostname="server01", agent_version="0.1.0", display_name="Server 01"
    ),
    "enrolled": wire.Enrolled(
        node_id=NODE,
        credential="mfn_handle_random_checksum",
        display_name="Server 01",
        heartbeat_interval_seconds=15,
    ),
    "beat": wire.Beat(
        boot_id=BOOT, sequence=7, sent_at=AT, agent_version="0.1.0", facts_digest=DIGEST, telemetry=TELEMETRY
    ),
    "beat-reply": wire.BeatReply(
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, want_facts=True, renew_credential=True
    ),
    "facts": wire.Facts(
        boot_id=BOOT,
        observed_at=AT,
        host=HOST,
        agent=AGENT,
        gpu_runtime=RUNTIME,
        accelerators=[GPU, MIG],
        volumes=[VOLUME],
    ),
    "facts-reply": wire.FactsReply(facts_digest=DIGEST, changed=True),
    "credential-reply": wire.CredentialReply(credential="mfn_handle_random_checksum", old_dies_at=AT),
    "goodbye": wire.Goodbye(boot_id=BOOT, reason="stopped by SIGTERM"),
    "problem": wire.Problem(
        status=426,
        code="protocol_unsupported",
        title="Upgrade Required",
        detail="X-ModelForge-Protocol says version '9'; this control plane speaks 1.",
        type="about:blank",
        request_id="0123456789abcdef",
        retryable=True,
        errors=[wire.FieldError(field="host.hostname", detail="Expected `str`")],
        protocols=[1],
    ),
}
