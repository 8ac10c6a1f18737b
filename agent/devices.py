"""The GPUs and MIG instances that NVML shows, each under a key that stays the same from one look to the next."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from agent import nvml, readings
from agent.wire import MAX_DEVICES, Reading

T = TypeVar("T")

Place = tuple[int, int | None]
"""Where a device sits: the index of the GPU, and the slot of the MIG instance on it (None: the GPU itself)."""

_MOST_MIG_SLOTS = 16


class Handle:
    """One device's side of NVML during one look; without a handle, every answer is the reason why there is none."""

    def __init__(
        self, library: nvml.Library, raw: Any = None, *, failure: Reading[Any] | None = None, mig: bool = False
    ) -> None:
        self._library = library
        self._raw = raw
        self._mig = mig
        self.failure = failure
        # Whether something was answered, if only "unsupported" or "denied".
        self.answers = failure is not None and failure.code not in nvml.DEAD

    def read(self, to: Callable[[Any], Reading[T]], *names: str, args: tuple[Any, ...] = ()) -> Reading[T]:
        """The reading behind an NVML function; ``names`` are its names, in order, as drivers old and new export it."""
        reading = self.failure or nvml.failure(nvml.FUNCTION_NOT_FOUND)
        if self.failure is None:
            for name in names:
                reading = self._library.read(to, name, self._raw, *args)
                if reading.code != nvml.FUNCTION_NOT_FOUND:
                    break
            self.answers |= reading.code not in nvml.DEAD
        if self._mig and reading.code == nvml.INVALID_ARGUMENT:  # the function takes whole GPUs only
            return Reading(reason="unsupported", code=reading.code)
        return reading

    def instance(self, slot: int) -> "Handle | None":
        """The MIG instance in a slot of this GPU; None where the slot is empty."""
        found = self.read(_any, "nvmlDeviceGetMigDeviceHandleByIndex", args=(slot,))
        if found.value is not None:
            return Handle(self._library, found.value, mig=True)
        empty = found.code in (nvml.NOT_FOUND, nvml.INVALID_ARGUMENT)
        return None if empty else Handle(self._library, failure=found)


@dataclass(kw_only=True)
class Device:
    """A GPU or MIG instance of one look, with what tells it from the others."""

    place: Place
    handle: Handle
    uuid: Reading[str]
    pci_bus_id: Reading[str]
    mig_enabled: Reading[bool]
    parent: "Device | None" = None
    key: str = ""
    identity: Literal["uuid", "pci_bus_id", "index"] = "index"

    @property
    def kind(self) -> Literal["gpu", "mig"]:
        return "gpu" if self.place[1] is None else "mig"


@dataclass
class Memory:
    """Which key was where at the last look, so that a device that stops answering keeps its own."""

    keys: dict[Place, tuple[str, Literal["uuid", "pci_bus_id", "index"]]] = field(default_factory=dict)
    gpus: int = 0

    def slots(self, gpu: int) -> list[int]:
        return [slot for (index, slot) in self.keys if index == gpu and slot is not None]


def survey(library: nvml.Library, gpus: int, memory: Memory) -> list[Device]:
    """All devices there are, each with a key of its own; at most as many as the wire carries."""
    if memory.gpus != gpus:  # indices have moved: what was where says nothing any more
        memory.keys.clear()
    found = [device for index in range(gpus) for device in _at(library, index, memory)][:MAX_DEVICES]
    _name(found, memory)
    memory.gpus = gpus
    memory.keys = {device.place: (device.key, device.identity) for device in found}
    return found


def _at(library: nvml.Library, index: int, memory: Memory) -> Iterator[Device]:
    raw = library.read(_any, "nvmlDeviceGetHandleByIndex", index)
    gpu = _device((index, None), Handle(library, raw.value, failure=None if raw.value is not None else raw))
    yield gpu
    mode = gpu.mig_enabled
    if mode.reason not in (None, "unsupported"):  # its instances did not go away: they went silent with it
        for slot in memory.slots(index):
            yield _device((index, slot), Handle(library, failure=mode), parent=gpu)
    if not mode.value:
        return
    slots = gpu.handle.read(readings.count, "nvmlDeviceGetMaxMigDeviceCount").value or 0
    for slot in range(min(slots, _MOST_MIG_SLOTS)):
        instance = gpu.handle.instance(slot)
        if instance is not None:
            yield _device((index, slot), instance, parent=gpu)


def _device(place: Place, handle: Handle, parent: Device | None = None) -> Device:
    return Device(
        place=place,
        handle=handle,
        parent=parent,
        uuid=handle.read(readings.said, "nvmlDeviceGetUUID"),
        pci_bus_id=handle.read(_bus_id, "nvmlDeviceGetPciInfo_v3") if parent is None else parent.pci_bus_id,
        mig_enabled=handle.read(_mig_on, "nvmlDeviceGetMigMode") if parent is None else readings.UNSUPPORTED,
    )


def _name(devices: list[Device], memory: Memory) -> None:
    """Gives every device its key: the UUID, or else the bus id, or else the index, whichever it has for itself alone.

    Two devices with one UUID are both named by their bus: nothing says which of them the UUID belongs to.
    """
    uuids = Counter(device.uuid.value for device in devices)
    buses = Counter(device.pci_bus_id.value for device in devices if device.parent is None)
    silent = []
    for device in devices:
        uuid, bus = device.uuid.value, device.pci_bus_id.value
        if uuid is not None and uuids[uuid] == 1:
            device.key, device.identity = uuid[:128], "uuid"
        elif device.uuid.reason in ("lost", "error", "denied") and device.place in memory.keys:
            silent.append(device)
        elif device.parent is None and bus is not None and buses[bus] == 1:
            device.key, device.identity = f"pci:{bus}"[:128], "pci_bus_id"
        else:
            device.key = _index_key(device)
    taken = {device.key for device in devices}
    for device in silent:
        key, identity = memory.keys[device.place]
        device.key, device.identity = (_index_key(device), "index") if key in taken else (key, identity)


def _index_key(device: Device) -> str:
    index, slot = device.place
    return f"index:{index}" if slot is None else f"index:{index}.{slot}"


def _any(raw: Any) -> Reading[Any]:
    return Reading(value=raw)


def _bus_id(info: Any) -> Reading[str]:
    return readings.said(info.busId)


def _mig_on(modes: Any) -> Reading[bool]:
    return Reading(value=modes[0] == 1)
