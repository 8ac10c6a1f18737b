"""Facts and samples as an agent would publish them, for the tests of what the registry makes of them."""

import uuid
from datetime import datetime
from typing import Any

import msgspec

from agent import wire
from agent.wire import Reading
from nodes import inventory
from nodes.models import Node
from tests.nodes.hearing import START, speaker

BOOT = uuid.UUID(int=7)


def known(value: Any) -> Reading[Any]:
    """A reading with a value."""
    return Reading(value=value)


def unknown(reason: Any = "unsupported", code: int | None = None) -> Reading[Any]:
    """A reading without one."""
    return Reading(reason=reason, code=code)


def gpu(number: int, **fields: Any) -> wire.AcceleratorFacts:
    """The GPU of this number, as a driver that works shows it."""
    said: dict[str, Any] = {
        "key": f"GPU-{number:04}",
        "index": number,
        "uuid": known(f"GPU-{number:04}"),
        "model": known("NVIDIA GeForce RTX 4080"),
        "pci_bus_id": known(f"0000:0{number % 10}:00.0"),
        "memory_bytes": known(16 * 2**30),
        "compute_capability": known("8.9"),
        "mig_enabled": unknown(),
        "power_limit_watts": known(320.0),
    }
    return wire.AcceleratorFacts(**said | fields)


def volume(name: str, free: int = 2**40, **fields: Any) -> wire.VolumeFacts:
    """A named volume."""
    said: dict[str, Any] = {
        "name": name,
        "path": f"/data/{name}",
        "is_mount": known(True),
        "filesystem": known("ext4"),
        "device_id": known("8:1"),
        "writable": known(True),
        "total_bytes": known(2**41),
        "free_bytes": known(free),
        "inodes_total": known(1000),
        "inodes_free": known(900),
    }
    return wire.VolumeFacts(**said | fields)


READY = wire.GpuRuntime(state="ready", driver_version=known("580.65"), cuda_version=known("13.0"))
ABSENT = wire.GpuRuntime(state="absent")
FAILED = wire.GpuRuntime(state="failed", code=999, message="Unknown Error")


def facts(
    gpus: list[wire.AcceleratorFacts] | None = None,
    *,
    runtime: wire.GpuRuntime = READY,
    volumes: list[wire.VolumeFacts] | None = None,
    hostname: str = "server01",
    tls_verify: bool = True,
    boot_id: uuid.UUID = BOOT,
    at: datetime = START,
) -> wire.Facts:
    """A whole publication."""
    return wire.Facts(
        boot_id=boot_id,
        observed_at=at,
        host=wire.HostFacts(
            hostname=hostname,
            os="Debian GNU/Linux 12",
            kernel="6.1",
            architecture="x86_64",
            cpu_model=known("AMD EPYC"),
            cpu_visible=known(64),
            cpu_limit=unknown(),
            memory_visible_bytes=known(2**38),
            memory_limit_bytes=unknown("denied", 13),
            swap_bytes=known(0),
        ),
        agent=wire.AgentFacts(version="0.1.0", protocol=1, python="3.11.2", started_at=at, tls_verify=tls_verify),
        gpu_runtime=runtime,
        accelerators=[] if gpus is None else gpus,
        volumes=[] if volumes is None else volumes,
    )


AFTER_THE_PACE = 2 * inventory.PACE
"""A node may publish other facts again after so long."""


def publish(node: Node, said: wire.Facts, now: datetime) -> wire.FactsReply:
    """Publish as this node."""
    return inventory.publish(said, by=speaker(node), now=now)


def sample(
    at: datetime, *, busy: float = 50.0, keys: tuple[str, ...] = ("GPU-0000",), **gpu_fields: Any
) -> wire.Telemetry:
    """A telemetry sample."""
    measured: dict[str, Any] = {
        "utilization_percent": known(busy),
        "memory_used_bytes": known(2**30),
        "memory_free_bytes": known(15 * 2**30),
        "temperature_celsius": known(60.0),
        "power_watts": known(200.0),
        "clock_sm_mhz": known(2500.0),
        "clock_memory_mhz": known(11000.0),
        "fan_percent": unknown(),
        "throttle_reasons": known([]),
        "ecc_corrected": unknown(),
        "ecc_uncorrected": unknown(),
        "processes": known(1),
    }
    return wire.Telemetry(
        at=at,
        host=wire.HostTelemetry(
            cpu_percent=known(busy),
            load_1m=known(1.5),
            memory_used_bytes=known(2**34),
            memory_available_bytes=known(2**37),
        ),
        gpu_runtime="ready",
        accelerators=[wire.AcceleratorTelemetry(key=key, **measured | gpu_fields) for key in keys],
        volumes=[wire.VolumeTelemetry(name="artifacts", free_bytes=known(2**40))],
    )


def as_json(message: msgspec.Struct) -> bytes:
    """The message as it crosses the wire."""
    return wire.encode(message)
