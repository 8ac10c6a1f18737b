"""How loaded a server is: one sample of all that is measured over time, carried by a beat."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agent.wire.values import MAX_DEVICES, MAX_VOLUMES, Bytes, Count, Instant, Key, Name, Number, Reading, Text


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
