"""The GPUs of this server as NVML shows them; it never raises and never takes longer than its deadline."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeVar

from agent import accelerators, devices, nvml, readings, wire
from agent.bounded import Bounded, StuckError
from agent.wire import MAX_DEVICES, Reading

D = TypeVar("D")

_FAREWELL = timedelta(seconds=2)
_DISPLAY_CLASS = "0x03"
_NVIDIA_VENDOR = "0x10de"


class Gpus:
    """NVML is opened once, asked by one thread at a time, and opened again with a back-off when it died.

    A driver call that hangs hangs nothing but its own thread; while it does, the answer is "failed" at once.
    """

    def __init__(
        self,
        *,
        deadline: timedelta = timedelta(seconds=10),
        clock: Callable[[], float] = time.monotonic,
        root: Path = Path("/"),
    ) -> None:
        self._deadline = deadline
        self._root = root
        self._library = nvml.Library(clock=clock)
        self._memory = devices.Memory()
        self._bounded = Bounded("nvml", clock=clock)

    def facts(self) -> tuple[wire.GpuRuntime, list[wire.AcceleratorFacts]]:
        """What the driver and its devices are."""
        pci = nvidia_pci_devices(self._root)
        try:
            return self._bounded.call(lambda: self._facts(pci), self._deadline)
        except StuckError as stuck:
            message = f"NVML has not answered for {self._steps(stuck.waited):.0f} s; a call into the driver hangs"
        except Exception as error:  # noqa: BLE001  a fault around NVML is a fact to tell, never an end
            message = readings.text(f"NVML cannot be asked: {error}")
        return wire.GpuRuntime(state="failed", message=message, pci_devices=pci), []

    def telemetry(self) -> tuple[Literal["ready", "absent", "failed"], list[wire.AcceleratorTelemetry]]:
        """How loaded and how well the devices are."""
        try:
            return self._bounded.call(lambda: self._look(accelerators.telemetry), self._deadline)
        except Exception:  # noqa: BLE001  StuckError among them; facts() tells which
            return "failed", []

    def close(self) -> None:
        """Hands NVML back to the driver, if the driver lets us."""
        try:
            self._bounded.call(self._library.close, min(self._deadline, _FAREWELL))
        except Exception:  # noqa: BLE001  the process ends anyway
            return

    def _facts(self, pci: Reading[int]) -> tuple[wire.GpuRuntime, list[wire.AcceleratorFacts]]:
        state, found = self._look(accelerators.facts)
        library = self._library
        runtime = wire.GpuRuntime(state=state, code=library.code, message=library.message, pci_devices=pci)
        if state != "ready":
            return runtime, found
        ready = wire.GpuRuntime(
            state=state,
            driver_version=library.read(readings.said, "nvmlSystemGetDriverVersion"),
            cuda_version=library.read(_cuda, "nvmlSystemGetCudaDriverVersion"),
            nvml_version=library.read(readings.said, "nvmlSystemGetNVMLVersion"),
            pci_devices=pci,
        )
        return ready, found

    def _look(self, describe: Callable[[devices.Device], D]) -> tuple[Literal["ready", "absent", "failed"], list[D]]:
        """One look at all devices; what they answer, or fail to, decides whether the library is still alive."""
        library = self._library
        if not library.ready():
            return library.state, []
        gpus = library.read(readings.count, "nvmlDeviceGetCount")
        if gpus.value is None:
            library.dead(nvml.UNKNOWN if gpus.code is None else gpus.code)
            return library.state, []
        found = devices.survey(library, min(gpus.value, MAX_DEVICES), self._memory)
        described = [describe(device) for device in found]
        silent = [device for device in found if device.parent is None and not device.handle.answers]
        if not silent:
            library.healthy()
        elif all(not device.handle.answers for device in found):
            library.dead(_why(silent[0]))
        else:
            library.suspect()
        # Without a runtime that works, nothing was observed about any device: none is listed then.
        return library.state, described if library.state == "ready" else []

    def _steps(self, waited: timedelta) -> float:
        """The wait in doubling steps, so that the facts of a server whose driver hangs do not change at every look."""
        step = self._deadline.total_seconds()
        while 0 < step * 2 <= waited.total_seconds():
            step *= 2
        return step


def _why(device: devices.Device) -> int:
    code = device.uuid.code
    return nvml.UNKNOWN if code is None else code


def _cuda(version: int) -> Reading[str]:
    return readings.said(f"{version // 1000}.{version % 1000 // 10}") if version > 0 else readings.UNSUPPORTED


def nvidia_pci_devices(root: Path) -> Reading[int]:
    """How many NVIDIA GPUs the PCI bus shows, whatever the driver says; unsupported where no bus is to be seen."""
    try:
        slots = list((root / "sys/bus/pci/devices").iterdir())
    except FileNotFoundError as error:
        return Reading(reason="unsupported", code=error.errno)
    except OSError as error:
        return readings.refused(error)
    return readings.count(sum(_is_gpu(slot) for slot in slots))


def _is_gpu(slot: Path) -> bool:
    try:
        vendor = (slot / "vendor").read_text("ascii", "replace").strip()
        return vendor == _NVIDIA_VENDOR and (slot / "class").read_text("ascii", "replace").startswith(_DISPLAY_CLASS)
    except OSError:  # unplugged while we look
        return False
