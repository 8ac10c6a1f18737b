"""A node's hardware as its page shows it: each measured value, or a dash with the reason why there is none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nodes import telemetry
from nodes.admin.rows import Cell, Row, cell
from nodes.models import Accelerator, Node, Volume
from nodes.wording import DASH, number, short, size, value_of, why_not


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU or MIG instance: what it is and how it is doing."""

    row: Accelerator
    name: str
    title: str
    identity: str
    memory: Cell
    used_percent: float | None
    load: Cell
    load_percent: float | None
    temperature: Cell
    power: Cell
    clock: Cell
    fan: Cell
    ecc: Cell
    processes: Cell
    throttled: Cell
    more: list[Row] = field(default_factory=list)
    child: bool = False
    missing_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """One named volume."""

    row: Volume
    used_percent: float | None
    level: str
    total: str
    free: Cell
    filesystem: str
    notes: list[str]


def host(facts: Mapping[str, Any]) -> list[Row]:
    """What the host shows and what the container's limits leave."""
    seen: Mapping[str, Any] = facts.get("host") or {}
    if not seen:
        return []
    source = str(seen.get("limits_source") or "no limits were readable")
    processors = cell(seen.get("cpu_visible"), str)
    memory = cell(seen.get("memory_visible_bytes"), size)
    return [
        Row("System", f"{seen.get('os') or DASH}"),
        Row("Kernel", f"{seen.get('kernel') or DASH} · {seen.get('architecture') or DASH}"),
        _row("Processor", cell(seen.get("cpu_model"), str)),
        _row("Processors visible", processors),
        _row("Processors left by limits", _limit(seen.get("cpu_limit"), number, source)),
        _row("Memory visible", memory),
        _row("Memory left by limits", _limit(seen.get("memory_limit_bytes"), size, source)),
        _row("Swap", cell(seen.get("swap_bytes"), size)),
        Row("In a container", "yes" if seen.get("container") else "no"),
    ]


def _limit(reading: Any, say: Callable[[Any], str], source: str) -> Cell:
    shown = cell(reading, say)
    if shown.missing and isinstance(reading, Mapping) and reading.get("reason") == "unsupported":
        return Cell("all of it: no limit set", f"Source: {source}")
    return Cell(f"{shown.text} ({source})", shown.title) if not shown.missing else shown


def runtime(facts: Mapping[str, Any]) -> list[Row]:
    """NVML as the agent finds it."""
    seen: Mapping[str, Any] = facts.get("gpu_runtime") or {}
    if not seen:
        return []
    state = str(seen.get("state"))
    said = {"ready": "ready", "absent": "absent: no NVIDIA driver here", "failed": "failed"}.get(state, state)
    if state == "failed":
        said = f"failed: {seen.get('message') or 'no message'} (code {seen.get('code')})"
    rows = [Row("NVML", said)]
    if state != "absent":
        rows += [
            _row("Driver", cell(seen.get("driver_version"), str)),
            _row("CUDA, newest supported", cell(seen.get("cuda_version"), str)),
            _row("NVML version", cell(seen.get("nvml_version"), str)),
        ]
    return [*rows, _row("GPUs on the PCI bus", cell(seen.get("pci_devices"), str))]


def _row(label: str, shown: Cell) -> Row:
    return Row(label, shown.text, shown.title)


def accelerators(node: Node) -> list[Device]:
    """GPUs in order, each followed by its MIG instances; what vanished stays, marked."""
    known = list(node.accelerators.order_by("index", "key"))
    measured = {str(a.get("key")): a for a in _newest(node).get("accelerators", [])}
    keys = {device.key for device in known if device.kind == "gpu"}
    shown: list[Device] = []
    for gpu in (device for device in known if device.kind == "gpu" or device.parent not in keys):
        shown.append(_device(gpu, measured.get(gpu.key, {}), child=False))
        children = [device for device in known if device.kind == "mig" and device.parent == gpu.key]
        shown += [_device(child, measured.get(child.key, {}), child=True) for child in children]
    return shown


def _newest(node: Node) -> Mapping[str, Any]:
    sample = telemetry.latest(node)
    return {} if sample is None else sample.data


def _device(device: Accelerator, measured: Mapping[str, Any], *, child: bool) -> Device:
    facts: Mapping[str, Any] = device.facts or {}
    used, total = value_of(measured.get("memory_used_bytes")), device.memory_bytes
    memory = _memory(device, facts, measured)
    load = value_of(measured.get("utilization_percent"))
    lost = device.missing_since is not None

    def read(name: str, say: Callable[[Any], str]) -> Cell:
        return Cell(DASH, "missing", missing=True) if lost else cell(measured.get(name), say)

    limit = value_of(facts.get("power_limit_watts"))
    power = read("power_watts", lambda watts: f"{watts:.0f} W")
    if limit is not None and not power.missing:
        power = Cell(f"{power.text} / {limit:.0f} W", "Draw and limit")
    return Device(
        row=device,
        name=("MIG " if device.kind == "mig" else "GPU ") + str(device.index),
        title=short(device.model) or why_not(facts.get("model")),
        identity=device.uuid or device.key,
        memory=memory,
        used_percent=100 * used / total if used is not None and total and not lost else None,
        load=read("utilization_percent", lambda percent: f"{percent:.0f} %"),
        load_percent=load if load is not None and not lost else None,
        temperature=read("temperature_celsius", lambda degrees: f"{degrees:.0f} °C"),
        power=power,
        clock=read("clock_sm_mhz", lambda mhz: f"{mhz:.0f} MHz"),
        fan=read("fan_percent", lambda percent: f"{percent:.0f} %"),
        ecc=read("ecc_uncorrected", str),
        processes=read("processes", str),
        throttled=read("throttle_reasons", lambda reasons: ", ".join(reasons) or "none"),
        more=_more(device, facts),
        child=child,
        missing_since=device.missing_since,
    )


def _memory(device: Accelerator, facts: Mapping[str, Any], measured: Mapping[str, Any]) -> Cell:
    if device.memory_model == "unified":
        return Cell("unified", "The GPU shares the host's memory")
    total = cell(facts.get("memory_bytes"), size)
    used = value_of(measured.get("memory_used_bytes"))
    if total.missing or used is None or device.missing_since is not None:
        return total
    return Cell(f"{size(used)} / {total.text}", "Used and total")


def _more(device: Accelerator, facts: Mapping[str, Any]) -> list[Row]:
    return [
        Row("Key", device.key, f"Identified by {device.identity}"),
        Row("PCI bus id", device.pci_bus_id or DASH, "" if device.pci_bus_id else why_not(facts.get("pci_bus_id"))),
        Row("Driver", device.driver_version or DASH),
        _row("Compute capability", cell(facts.get("compute_capability"), str)),
        _row("MIG", cell(facts.get("mig_enabled"), lambda on: "on" if on else "off")),
        Row("First seen", at=device.first_seen_at),
        Row("Last seen", at=device.last_seen_at),
    ]


def volumes(node: Node) -> list[Space]:
    """The named volumes with how full they are."""
    return [_space(volume, in_container=_in_container(node)) for volume in node.volumes.all()]


def _in_container(node: Node) -> bool:
    host: Mapping[str, Any] = (node.facts or {}).get("host") or {}
    return host.get("container") is True


def state_folder(node: Node) -> Row:
    """Where the node's identity lies, by what was observed of its state volume."""
    volume = next((volume for volume in node.volumes.all() if volume.name == "state"), None)
    mount: Any = (volume.facts or {}).get("is_mount") if volume else None
    match value_of(mount):
        case True:
            return Row("State", "on a mounted volume")
        case False if _in_container(node):
            return Row("State", "on the container's own disk: lost with it")
        case False:
            return Row("State", "in a folder of the host's file system")
    return Row("State", DASH, why_not(mount))


def _space(volume: Volume, *, in_container: bool) -> Space:
    facts: Mapping[str, Any] = volume.facts or {}
    used = None
    if volume.total_bytes and volume.free_bytes is not None:
        used = 100 * (1 - volume.free_bytes / volume.total_bytes)
    notes = []
    if value_of(facts.get("writable")) is False:
        notes.append("not writable")
    if in_container and value_of(facts.get("is_mount")) is False:
        notes.append("not a mount: lies on the container's own disk")
    if volume.filesystem == "fuse.shfs":
        notes.append("Unraid user share: no place for artifacts")
    free = (
        Cell(size(volume.free_bytes))
        if volume.free_bytes is not None
        else Cell(DASH, why_not(facts.get("free_bytes")), missing=True)
    )
    level = "neutral" if used is None else "danger" if used >= 95 else "warning" if used >= 85 else "fine"
    return Space(volume, used, level, size(volume.total_bytes), free, volume.filesystem or DASH, notes)
