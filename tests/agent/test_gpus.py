"""What the agent reads from the NVIDIA driver: the real nvidia-ml-py on a stand-in for the driver's library."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import wire
from agent.wire import Reading
from tests.nvml.asked import Asked, asked

UUIDS = [f"GPU-00000000-0000-0000-0000-{n:012d}" for n in range(16)]
MIB = 2**20


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked(tmp_path_factory.mktemp("nvml"), devices=2) as running:
        yield running


@pytest.fixture
def two(process: Asked) -> Asked:
    """Two GPUs in good health."""
    process.set()
    process.telemetry()
    return process


def reading(reason: wire.Reason, code: int) -> Reading[object]:
    return Reading(reason=reason, code=code)


def test_the_facts_are_what_the_driver_tells(two: Asked) -> None:
    runtime, gpus = two.facts()

    assert runtime == wire.GpuRuntime(
        state="ready",
        driver_version=Reading(value="570.133.20"),
        cuda_version=Reading(value="13.0"),
        nvml_version=Reading(value="13.570.133.20"),
        pci_devices=Reading(reason="unsupported", code=2),  # no PCI bus under the test's root
    )
    assert [gpu.key for gpu in gpus] == UUIDS[:2]
    assert gpus[1] == wire.AcceleratorFacts(
        key=UUIDS[1],
        index=1,
        uuid=Reading(value=UUIDS[1]),
        model=Reading(value="NVIDIA H200"),
        pci_bus_id=Reading(value="00000000:02:00.0"),
        memory_bytes=Reading(value=143771 * MIB),
        compute_capability=Reading(value="9.0"),
        mig_enabled=Reading(value=False),
        power_limit_watts=Reading(value=700.0),
    )


def test_the_telemetry_is_what_the_driver_measures(two: Asked) -> None:
    two.set(throttle=5, processes=["0", "3"])

    state, gpus = two.telemetry()

    assert state == "ready"
    assert gpus[1] == wire.AcceleratorTelemetry(
        key=UUIDS[1],
        utilization_percent=Reading(value=37.0),
        memory_used_bytes=Reading(value=143771 * MIB // 4),
        memory_free_bytes=Reading(value=143771 * MIB - 143771 * MIB // 4),
        temperature_celsius=Reading(value=55.0),
        power_watts=Reading(value=312.5),
        clock_sm_mhz=Reading(value=1980.0),
        clock_memory_mhz=Reading(value=3201.0),
        fan_percent=Reading(value=41.0),
        throttle_reasons=Reading(value=["gpu_idle", "sw_power_cap"]),
        ecc_corrected=Reading(value=4),
        ecc_uncorrected=Reading(value=0),
        processes=Reading(value=3),
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [(3, "unsupported"), (13, "unsupported"), (4, "denied"), (15, "lost"), (999, "error"), (17, "error")],
)
def test_a_value_that_is_not_there_is_a_reason_and_never_zero(two: Asked, code: int, reason: wire.Reason) -> None:
    """Field case 44."""
    two.set(faults=f"nvmlDeviceGetFanSpeed@0={code}")

    _, (first, second) = two.telemetry()

    assert first.fan_percent == reading(reason, code)
    assert second.fan_percent == Reading(value=41.0)


TELEMETRY_FIELDS = {
    "nvmlDeviceGetUtilizationRates": ["utilization_percent"],
    "nvmlDeviceGetMemoryInfo": ["memory_used_bytes", "memory_free_bytes"],
    "nvmlDeviceGetTemperature": ["temperature_celsius"],
    "nvmlDeviceGetPowerUsage": ["power_watts"],
    "nvmlDeviceGetClockInfo": ["clock_sm_mhz", "clock_memory_mhz"],
    "nvmlDeviceGetFanSpeed": ["fan_percent"],
    "nvmlDeviceGetCurrentClocksEventReasons": ["throttle_reasons"],
    "nvmlDeviceGetTotalEccErrors": ["ecc_corrected", "ecc_uncorrected"],
    "nvmlDeviceGetComputeRunningProcesses_v3": ["processes"],
}


@pytest.mark.parametrize("function", TELEMETRY_FIELDS)
def test_a_measure_that_fails_takes_no_other_with_it(two: Asked, function: str) -> None:
    """Field case 44."""
    two.set(faults=f"{function}=999")

    _, (gpu, _) = two.telemetry()

    missing = [name for name in gpu.__struct_fields__ if name != "key" and getattr(gpu, name).value is None]
    assert sorted(missing) == sorted(TELEMETRY_FIELDS[function])
    assert all(getattr(gpu, name) == reading("error", 999) for name in missing)


FACT_FIELDS = {
    "nvmlDeviceGetName": "model",
    "nvmlDeviceGetPciInfo_v3": "pci_bus_id",
    "nvmlDeviceGetMemoryInfo": "memory_bytes",
    "nvmlDeviceGetCudaComputeCapability": "compute_capability",
    "nvmlDeviceGetMigMode": "mig_enabled",
}


@pytest.mark.parametrize("function", FACT_FIELDS)
def test_a_fact_that_is_denied_takes_no_other_with_it(two: Asked, function: str) -> None:
    two.set(faults=f"{function}=4")

    _, (gpu, _) = two.facts()

    read = ["uuid", "power_limit_watts", *FACT_FIELDS.values()]
    assert [name for name in read if getattr(gpu, name).value is None] == [FACT_FIELDS[function]]
    assert getattr(gpu, FACT_FIELDS[function]) == reading("denied", 4)


def test_a_value_that_nvml_marks_as_not_available_is_unsupported(two: Asked) -> None:
    two.set(fan=4294967295)

    assert two.telemetry()[1][0].fan_percent == Reading(reason="unsupported")


def test_a_board_whose_power_limit_is_not_managed_tells_the_one_that_is_enforced(two: Asked) -> None:
    two.set(faults="nvmlDeviceGetPowerManagementLimit=3")

    assert two.facts()[1][0].power_limit_watts == Reading(value=650.0)


def test_a_driver_that_only_knows_the_old_name_of_the_throttle_reasons_is_understood(two: Asked) -> None:
    two.set(faults="nvmlDeviceGetCurrentClocksEventReasons=13", throttle=64)

    assert two.telemetry()[1][0].throttle_reasons == Reading(value=["hw_thermal_slowdown"])


def test_a_driver_that_only_knows_the_new_temperature_call_is_understood(two: Asked) -> None:
    two.set(faults="nvmlDeviceGetTemperature=13")

    assert two.telemetry()[1][0].temperature_celsius == Reading(value=56.0)


def test_a_throttle_reason_without_a_name_is_told_by_its_bit(two: Asked) -> None:
    two.set(throttle=2**40 + 8)

    assert two.telemetry()[1][0].throttle_reasons == Reading(value=["hw_slowdown", "bit_40"])


def test_a_model_name_that_is_no_text_arrives_as_text(two: Asked) -> None:
    two.set(names=["RTX\udcff\x07 4080", "B" * 95])

    _, (first, second) = two.facts()

    assert first.model == Reading(value="RTX\ufffd 4080")
    assert second.model == Reading(value="B" * 95)


def test_a_system_version_that_is_denied_is_a_reason_while_the_devices_are_told(two: Asked) -> None:
    two.set(faults="nvmlSystemGetDriverVersion=4,nvmlSystemGetCudaDriverVersion=13")

    runtime, gpus = two.facts()

    assert (runtime.driver_version, runtime.cuda_version) == (reading("denied", 4), reading("unsupported", 13))
    assert len(gpus) == 2


@pytest.mark.parametrize(
    ("name", "model"), [("NVIDIA GB10", "unified"), ("Orin (nvgpu)", "unified"), ("NVIDIA H200", "dedicated")]
)
def test_a_gpu_on_the_hosts_memory_is_unified_and_has_no_invented_size(two: Asked, name: str, model: str) -> None:
    """Field case 51."""
    two.set(names=[name], faults="nvmlDeviceGetMemoryInfo=3")

    _, (gpu, _) = two.facts()
    _, (load, _) = two.telemetry()

    assert gpu.memory_model == model
    assert gpu.memory_bytes == load.memory_used_bytes == load.memory_free_bytes == reading("unsupported", 3)


def test_a_model_with_memory_of_its_own_is_dedicated_whatever_its_name(two: Asked) -> None:
    """Field case 51, its twin."""
    two.set(names=["NVIDIA GB10"])

    assert two.facts()[1][0].memory_model == "dedicated"


def test_pci_devices_are_counted_whatever_the_driver_says(tmp_path: Path) -> None:
    """Field case 46: the bus shows three NVIDIA GPUs, the driver one."""
    slots = {"a": ("0x10de", "0x030000"), "b": ("0x10de", "0x030200"), "c": ("0x10de", "0x030200")}
    others = {"audio": ("0x10de", "0x040300"), "amd": ("0x1002", "0x030000")}
    for name, (vendor, kind) in (slots | others).items():
        slot = tmp_path / "sys/bus/pci/devices" / name
        slot.mkdir(parents=True)
        (slot / "vendor").write_text(vendor + "\n")
        (slot / "class").write_text(kind + "\n")

    with asked(tmp_path, devices=1) as one:
        runtime, gpus = one.facts()

    assert runtime.pci_devices == Reading(value=3)
    assert len(gpus) == 1
