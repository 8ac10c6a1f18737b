"""What the golden samples in ``v1`` say, field by field: the meaning that version 1 of the protocol has for ever."""

from datetime import UTC, datetime
from typing import Any
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
    job_types=["artifact.acquire.v1", "artifact.verify.v1"],
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

ROOT = UUID("2b1f6f0e-7f0c-4b58-9a55-0d5f0e1c7a01")
RETIRED = UUID("2b1f6f0e-7f0c-4b58-9a55-0d5f0e1c7a02")
JOB = UUID("c2a4d7f0-1d34-4e0b-8a36-6f8f5f0b9b02")
LEASE = UUID("f4d4c3b2-a190-4f7e-9d6c-5b4a39281703")
OLD = UUID("5e0c9b1a-3c2d-4f6e-8a7b-9c0d1e2f3a04")
COMMIT = "a" * 8 + "0123456789abcdef" * 2
PATH = "/data/artifacts/models"
SNAPSHOT = f"models/org/model/{COMMIT}"

ACQUIRE = wire.AcquireOrder(
    root_id=ROOT,
    path=PATH,
    repo_id="org/model",
    revision="main",
    commit=COMMIT,
    allow_patterns=["*.safetensors"],
    ignore_patterns=["original/*"],
    allow_formats=["pickle"],
    preflight_only=True,
    reread=True,
    reserve_bytes=50_000_000_000,
    reserved_bytes=7_000_000_000,
    room_bytes=900_000_000_000,
    expendable=[OLD],
)
VERIFY = wire.VerifyOrder(
    root_id=ROOT, path=PATH, snapshot=SNAPSHOT, repo_id="org/model", commit=COMMIT, manifest_sha256=DIGEST
)
REMOVE = wire.RemoveOrder(
    root_id=ROOT, path=PATH, snapshot=SNAPSHOT, repo_id="org/model", commit=COMMIT, manifest_sha256=DIGEST
)
PROOF = wire.RootProof(
    root_id=ROOT,
    approved=True,
    device_id="259:2",
    fsid="fe01",
    filesystem="ext4",
    mount_point="/data/artifacts",
    total_bytes=Reading(value=2_000_000_000_000),
    free_bytes=Reading(value=1_500_000_000_000),
    inodes_free=Reading(value=999_000),
    partial_bytes=Reading(value=40_000_000_000),
)
FAULT = wire.RootProof(
    root_id=OLD,
    fault="marker_missing",
    detail="Mount the disk.",
    device_id="0:42",
    total_bytes=Reading(reason="error", code=5),
    free_bytes=Reading(reason="error", code=5),
    inodes_free=Reading(reason="unsupported"),
)
BAD_FILE = wire.Quarantined(
    path="model.safetensors",
    size_bytes=4_000_000_000,
    expected=DIGEST,
    found=DIGEST[::-1],
    reason="digest_mismatch",
    kept=False,
    location=f"{JOB}/{DIGEST[::-1]}",
)


def _given(order: wire.AcquireOrder | wire.VerifyOrder | wire.RemoveOrder, **more: Any) -> wire.ClaimReply:
    job = wire.Job(id=JOB, attempt=2, lease_id=LEASE, lease_seconds=300, order=order)
    return wire.ClaimReply(job=job, **more)


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
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, want_facts=True, renew_credential=True, work=True
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
    "claim": wire.Claim(
        boot_id=BOOT,
        types=["artifact.acquire.v1", "artifact.verify.v1"],
        proofs=[PROOF, FAULT],
        partials=[JOB, OLD],
        weights={OLD: 40_000_000_000},
    ),
    "claim-reply": _given(
        ACQUIRE,
        roots=[
            wire.RootOrder(root_id=ROOT, path=PATH, approve=True, device_id="259:2", fsid="fe01", replaces=[RETIRED])
        ],
        forget=[OLD],
        look_again_seconds=30,
    ),
    "claim-reply-verify": _given(VERIFY),
    "claim-reply-remove": _given(REMOVE),
    "progress": wire.Progress(
        lease_id=LEASE,
        phase="fetch",
        commit=COMMIT,
        bytes_total=16_000_000_000,
        bytes_done=4_000_000_000,
        bytes_fetched=3_000_000_000,
        files_total=12,
        files_done=3,
        bytes_per_second=250_000_000.5,
        eta_seconds=48,
    ),
    "progress-reply": wire.ProgressReply(lease_seconds=300, cancel=True),
    "result": wire.Result(
        lease_id=LEASE,
        outcome="failed",
        commit=COMMIT,
        failure=wire.Failure(
            code="insufficient_capacity",
            detail="12 GB are missing.",
            numbers={"needed_bytes": 16_000_000_000, "free_bytes": 4_000_000_000},
            retry_after_seconds=60,
        ),
        preflight=wire.Preflight(
            files=12,
            bytes=16_000_000_000,
            largest_file="model.safetensors",
            largest_bytes=4_000_000_000,
            gated=True,
            fits=False,
            needed_bytes=16_000_000_000,
            free_bytes=4_000_000_000,
            refused="model.bin is a pickle.",
        ),
        published=wire.Published(
            snapshot=SNAPSHOT,
            files=12,
            bytes=16_000_000_000,
            manifest_sha256=DIGEST,
            already_present=True,
            reread=True,
            bytes_fetched=15_000_000_000,
            bytes_reused=1_000_000_000,
        ),
        verified=wire.Verified(files=12, bytes=16_000_000_000, damaged=["model.safetensors"], missing=True),
        quarantined=[BAD_FILE],
    ),
    "result-reply": wire.ResultReply(state="queued"),
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
