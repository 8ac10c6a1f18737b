"""Which key each GPU and MIG instance goes by, and that it keeps it while the device or the driver has trouble."""

from pathlib import Path
from typing import Any

from agent.wire import MAX_DEVICES, Reading
from tests.nvml.asked import asked
from tests.nvml.standin import environment

UUIDS = [f"GPU-00000000-0000-0000-0000-{n:012d}" for n in range(16)]


def reasons(*readings: Reading[Any]) -> set[tuple[str | None, int | None]]:
    return {(reading.reason, reading.code) for reading in readings}


def test_one_dead_gpu_leaves_the_others_reported(tmp_path: Path) -> None:
    """Field case 45."""
    with asked(tmp_path, 4, faults="*@3=15") as four:
        runtime, facts = four.facts()
        state, loads = four.telemetry()

    assert (runtime.state, state) == ("ready", "ready")
    assert [load.temperature_celsius.value for load in loads] == [55.0, 55.0, 55.0, None]
    assert [gpu.key for gpu in facts] == [load.key for load in loads] == [*UUIDS[:3], "index:3"]
    assert reasons(facts[3].model, facts[3].uuid, loads[3].processes) == {("lost", 15)}


def test_a_gpu_that_dies_keeps_the_key_it_had(tmp_path: Path) -> None:
    """Field case 45."""
    with asked(tmp_path, 4) as four:
        before = four.facts()[1]
        four.set(faults="*@3=15")
        after = four.facts()[1]

    assert [gpu.key for gpu in after] == [gpu.key for gpu in before]
    assert after[3].identity == "uuid"
    assert after[3].uuid == Reading(reason="lost", code=15)


def test_a_gpu_that_answers_all_but_its_uuid_keeps_the_key_it_had(tmp_path: Path) -> None:
    with asked(tmp_path, 2) as two:
        before = two.facts()[1]
        two.set(faults="nvmlDeviceGetUUID@1=999")
        after = two.facts()[1]

    assert after[1].key == before[1].key
    assert after[1].model == Reading(value="NVIDIA H200")


def test_a_gpu_that_disappears_is_not_listed(tmp_path: Path) -> None:
    """Field case 46: the control plane compares; the agent says what it sees."""
    with asked(tmp_path, 4) as four:
        before = four.facts()[1]
        four.set(devices=3)
        runtime, after = four.facts()

    assert len(before) == 4
    assert runtime.state == "ready"
    assert [gpu.key for gpu in after] == UUIDS[:3]


def test_a_key_is_not_remembered_for_another_gpu_that_moved_to_its_place(tmp_path: Path) -> None:
    """Field case 46: with the first gone the second has its index; dead or not, it is not called the first."""
    with asked(tmp_path, 3) as three:
        three.facts()
        three.set(devices=2, faults="*@0=15", uuids=[UUIDS[1], UUIDS[2]])
        _, after = three.facts()

    assert [gpu.key for gpu in after] == ["index:0", UUIDS[2]]


def test_sixteen_gpus_are_told_apart_also_when_two_have_one_uuid(tmp_path: Path) -> None:
    """Field case 54."""
    uuids = [*UUIDS[:15], UUIDS[0]]
    with asked(tmp_path, 16, uuids=uuids) as sixteen:
        facts = sixteen.facts()[1]
        loads = sixteen.telemetry()[1]

    keys = [gpu.key for gpu in facts]
    assert keys == ["pci:00000000:01:00.0", *UUIDS[1:15], "pci:00000000:10:00.0"]
    assert [gpu.identity for gpu in facts] == ["pci_bus_id", *["uuid"] * 14, "pci_bus_id"]
    assert facts[0].uuid == facts[15].uuid == Reading(value=UUIDS[0])
    assert [load.key for load in loads] == keys


def test_a_gpu_without_a_uuid_goes_by_its_bus(tmp_path: Path) -> None:
    """Field case 54."""
    with asked(tmp_path, 2, uuids=["", UUIDS[1]]) as two:
        first, second = two.facts()[1]

    assert (first.key, first.identity) == ("pci:00000000:01:00.0", "pci_bus_id")
    assert first.uuid == Reading(reason="unsupported")
    assert second.key == UUIDS[1]


def test_a_gpu_without_uuid_and_bus_goes_by_its_index(tmp_path: Path) -> None:
    """Field case 54."""
    with asked(tmp_path, 2, uuids=["", UUIDS[1]], faults="nvmlDeviceGetPciInfo_v3@0=4") as two:
        first, _ = two.facts()[1]

    assert (first.key, first.identity) == ("index:0", "index")


def test_mig_instances_are_listed_below_their_gpu_with_reasons_for_what_they_lack(tmp_path: Path) -> None:
    """Field case 52."""
    faults = "nvmlDeviceGetMemoryInfo@0=4,nvmlDeviceGetPowerManagementLimit@0.1=4"
    with asked(tmp_path, 2, mig=["2", ""], faults=faults) as two:
        runtime, facts = two.facts()
        loads = two.telemetry()[1]

    parent, first, second, plain = facts
    assert runtime.state == "ready"
    assert [(gpu.kind, gpu.index, gpu.parent) for gpu in facts] == [
        ("gpu", 0, None),
        ("mig", 0, parent.key),
        ("mig", 1, parent.key),
        ("gpu", 1, None),
    ]
    assert (parent.mig_enabled, plain.mig_enabled) == (Reading(value=True), Reading(value=False))
    assert parent.memory_bytes == second.power_limit_watts == Reading(reason="denied", code=4)
    assert first.key.startswith("MIG-")
    assert first.memory_bytes.value == 143771 * 2**20 // 7
    assert [load.key for load in loads] == [gpu.key for gpu in facts]
    assert [load.utilization_percent.reason for load in loads] == ["unsupported", "unsupported", "unsupported", None]


def test_a_function_that_takes_no_mig_instance_is_unsupported_there(tmp_path: Path) -> None:
    """Field case 52: drivers refuse the handle of an instance as an invalid argument."""
    with asked(tmp_path, 1, mig=["1"], faults="nvmlDeviceGetFanSpeed=2") as one:
        parent, instance = one.telemetry()[1]

    assert instance.fan_percent == Reading(reason="unsupported", code=2)
    assert parent.fan_percent == Reading(reason="error", code=2)


def test_a_mig_instance_that_may_not_be_opened_is_listed_as_denied(tmp_path: Path) -> None:
    """Field case 52."""
    with asked(tmp_path, 1, mig=["2"], faults="nvmlDeviceGetMigDeviceHandleByIndex@0.1=4") as one:
        parent, first, second = one.facts()[1]

    assert (second.key, second.parent, first.parent) == ("index:0.1", parent.key, parent.key)
    assert reasons(second.uuid, second.memory_bytes) == {("denied", 4)}


def test_mig_instances_of_a_gpu_that_dies_keep_their_keys(tmp_path: Path) -> None:
    with asked(tmp_path, 2, mig=["2", ""]) as two:
        before = two.facts()[1]
        two.set(faults="*@0=15")
        after = two.facts()[1]

    assert [(gpu.key, gpu.parent) for gpu in after] == [(gpu.key, gpu.parent) for gpu in before]
    assert [gpu.uuid.reason for gpu in after] == ["lost", "lost", "lost", None]


def test_no_more_devices_are_listed_than_the_wire_carries(tmp_path: Path) -> None:
    with asked(tmp_path, 64, mig=["7"]) as many:
        _, facts = many.facts()

    assert len(facts) == MAX_DEVICES
    assert len({gpu.key for gpu in facts}) == MAX_DEVICES


def test_the_environment_of_the_stand_in_names_its_settings_in_full() -> None:
    given = environment(3, uuids=["a", ""], faults="*=3")

    assert (given["NVML_DEVICES"], given["NVML_UUIDS"], given["NVML_FAULTS"]) == ("3", "a|", "*=3")
