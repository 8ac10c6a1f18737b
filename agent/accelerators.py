"""What one GPU or MIG instance is, and how loaded and how well it is; every field a value or a reason of its own."""

from typing import Any

from agent import readings, wire
from agent.devices import Device
from agent.wire import Reading


def facts(device: Device) -> wire.AcceleratorFacts:
    """What the device is."""
    read = device.handle.read
    model = read(readings.said, "nvmlDeviceGetName")
    memory = read(lambda info: readings.size(info.total), "nvmlDeviceGetMemoryInfo")
    limit = read(_watts, "nvmlDeviceGetPowerManagementLimit")
    if limit.reason == "unsupported":  # laptops and boards whose limit is not the driver's to manage
        limit = read(_watts, "nvmlDeviceGetEnforcedPowerLimit")
    index, slot = device.place
    return wire.AcceleratorFacts(
        key=device.key,
        identity=device.identity,
        kind=device.kind,
        index=index if slot is None else slot,
        parent=None if device.parent is None else device.parent.key,
        uuid=device.uuid,
        model=model,
        pci_bus_id=device.pci_bus_id,
        memory_bytes=memory,
        memory_model="unified" if memory.reason == "unsupported" and _integrated(model.value) else "dedicated",
        compute_capability=read(
            lambda pair: readings.said(f"{pair[0]}.{pair[1]}"), "nvmlDeviceGetCudaComputeCapability"
        ),
        mig_enabled=device.mig_enabled,
        power_limit_watts=limit,
    )


_INTEGRATED = ("gb10", "thor", "orin", "xavier", "tegra", "jetson", "nvgpu")


def _integrated(model: str | None) -> bool:
    """Whether the model is one of those that use the host's memory and therefore report none of their own."""
    words = (model or "").lower().replace("(", " ").replace(")", " ").replace("-", " ").split()
    return any(word in _INTEGRATED for word in words)


def telemetry(device: Device) -> wire.AcceleratorTelemetry:
    """How loaded and how well the device is."""
    read = device.handle.read
    memory = read(_whole, "nvmlDeviceGetMemoryInfo")
    return wire.AcceleratorTelemetry(
        key=device.key,
        utilization_percent=read(lambda rates: readings.number(rates.gpu), "nvmlDeviceGetUtilizationRates"),
        memory_used_bytes=memory if memory.value is None else readings.size(memory.value.used),
        memory_free_bytes=memory if memory.value is None else readings.size(memory.value.free),
        temperature_celsius=read(_measured, "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV", args=(0,)),
        power_watts=read(_watts, "nvmlDeviceGetPowerUsage"),
        clock_sm_mhz=read(_measured, "nvmlDeviceGetClockInfo", args=(1,)),
        clock_memory_mhz=read(_measured, "nvmlDeviceGetClockInfo", args=(2,)),
        fan_percent=read(_measured, "nvmlDeviceGetFanSpeed"),
        throttle_reasons=read(
            _throttles, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        ),
        ecc_corrected=read(_counted, "nvmlDeviceGetTotalEccErrors", args=(0, 0)),
        ecc_uncorrected=read(_counted, "nvmlDeviceGetTotalEccErrors", args=(1, 0)),
        processes=read(lambda found: readings.count(len(found)), "nvmlDeviceGetComputeRunningProcesses"),
    )


_NOT_AVAILABLE = (2**32 - 1, 2**64 - 1)
"""What NVML writes where it succeeds and still has no value (NVML_VALUE_NOT_AVAILABLE)."""


def _measured(raw: int) -> Reading[float]:
    return readings.UNSUPPORTED if raw in _NOT_AVAILABLE else readings.number(raw)


def _counted(raw: int) -> Reading[int]:
    return readings.UNSUPPORTED if raw in _NOT_AVAILABLE else readings.count(raw)


def _watts(milliwatts: int) -> Reading[float]:
    return readings.UNSUPPORTED if milliwatts in _NOT_AVAILABLE else readings.number(milliwatts / 1000)


_THROTTLES = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
"""NVML's names of the bits in the reasons for a clock below its best, from the lowest bit up."""


def _throttles(bits: int) -> Reading[list[str]]:
    set_bits = [bit for bit in range(64) if bits >> bit & 1][:32]
    return Reading(value=[_THROTTLES[bit] if bit < len(_THROTTLES) else f"bit_{bit}" for bit in set_bits])


def _whole(info: Any) -> Reading[Any]:
    return Reading(value=info)
