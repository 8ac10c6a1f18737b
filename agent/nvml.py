"""The life cycle of the NVIDIA driver library: opened once, watched, closed and opened again with a back-off."""

import ctypes
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeVar, cast

from agent import readings
from agent.wire import Reading, Reason

T = TypeVar("T")

SHARED_OBJECT = "libnvidia-ml.so.1"
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 2, 3, 4, 6
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 9, 12, 13
GPU_IS_LOST, LIBRARY_MISMATCH, UNKNOWN = 15, 18, 999

DEAD = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, GPU_IS_LOST, LIBRARY_MISMATCH, UNKNOWN})
"""A device of which every call ends so is gone; when all devices are, the library is."""

_REASONS: dict[int, Reason] = {
    NOT_SUPPORTED: "unsupported",
    FUNCTION_NOT_FOUND: "unsupported",
    NO_PERMISSION: "denied",
    GPU_IS_LOST: "lost",
}

_REMEDIES = {
    NO_PERMISSION: "NVML: no permission; the agent may not open the NVIDIA devices",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    LIBRARY_NOT_FOUND: f"no NVIDIA driver here ({SHARED_OBJECT} not found)",
    GPU_IS_LOST: "NVML: the GPU is lost (fallen off the bus); the server needs a reboot or a reset of the GPU",
    LIBRARY_MISMATCH: "NVML: driver and library versions differ, as after a driver upgrade; reboot the server, or"
    " recreate the agent's container if the server was rebooted",
    UNKNOWN: "NVML: unknown error; a container that lost its GPU devices (as after systemctl daemon-reload)"
    " must be recreated",
}


def failure(code: int) -> Reading[Any]:
    """The reading that stands for an NVML return code."""
    return Reading(reason=_REASONS.get(code, "error"), code=code)


class Library:
    """NVML in this process. Used by one thread at a time; every method may block for as long as the driver does."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.state: Literal["ready", "absent", "failed"] = "absent"
        self.code: int | None = None
        self.message = ""
        self._clock = clock
        self._pynvml: Any = None
        self._failures = 0  # in a row, since the last cycle in which everything answered
        self._open_at: float | None = clock()  # when to open (again); None: nothing to mend

    def ready(self) -> bool:
        """Whether calls make sense now; opens the library where that is due."""
        if self._open_at is not None and self._clock() >= self._open_at:
            self.close()
            self._open()
        return self.state == "ready"

    def healthy(self) -> None:
        """Every device answered: the next trouble starts with the shortest pause."""
        self._failures = 0
        self._open_at = None

    def suspect(self) -> None:
        """Some devices are gone while others answer: go on, and open the library anew after a pause."""
        if self._open_at is None:
            self._pause()

    def dead(self, code: int) -> None:
        """Nothing answers any more: close, so that nothing leaks, and open again after a pause."""
        self.close()
        self._fail(code)

    def close(self) -> None:
        """Hands everything back to the driver; what the driver answers to that changes nothing."""
        if self.state == "ready":
            self.state, self.code, self.message = "failed", UNINITIALIZED, "NVML is closed"
            self.read(lambda _: readings.UNSUPPORTED, "nvmlShutdown")

    def read(self, to: Callable[[Any], Reading[T]], name: str, *args: Any) -> Reading[T]:
        """Calls one NVML function by name and turns its answer into a reading; any failure becomes the reason."""
        call = getattr(self._pynvml, name, None)
        if call is None:  # an nvidia-ml-py that does not know the function
            return failure(FUNCTION_NOT_FOUND)
        try:
            return to(call(*args))
        except UnicodeDecodeError as error:  # nvidia-ml-py insists on UTF-8, drivers do not; only texts come here
            return cast("Reading[T]", readings.said(bytes(error.object)))
        except self._pynvml.NVMLLibraryMismatchError:  # its word for a function that the driver does not export
            return failure(FUNCTION_NOT_FOUND)
        except Exception as error:  # noqa: BLE001  whatever the driver does, the other readings go on
            code = getattr(error, "value", None)
            return failure(code) if isinstance(code, int) else Reading(reason="error")

    def _open(self) -> None:
        try:
            ctypes.CDLL(SHARED_OBJECT)
        except OSError as error:
            self._unloadable(str(error))
            return
        if self._pynvml is None:
            import pynvml  # noqa: PLC0415  3 MiB that a server without a driver need not carry

            self._pynvml = pynvml
        opened = self.read(lambda _: Reading(value=True), "nvmlInit")
        if opened.value:
            self.state, self.code, self.message = "ready", None, ""
            self._open_at = None
        else:
            self._fail(opened.code)

    def _unloadable(self, why: str) -> None:
        """Without the library there is no driver, which is no error; a library that does not load is one."""
        missing = SHARED_OBJECT in why and "No such file" in why
        self.state = "absent" if missing else "failed"
        self.code = LIBRARY_NOT_FOUND
        self.message = _REMEDIES[LIBRARY_NOT_FOUND] if missing else readings.text(f"{SHARED_OBJECT}: {why}")
        self._open_at = self._clock() + LONGEST_PAUSE.total_seconds()

    def _fail(self, code: int | None) -> None:
        self.state = "absent" if code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND) else "failed"
        self.code = code
        self.message = _REMEDIES.get(code or 0) or readings.text(f"NVML error {code}: {self._wording(code)}")
        self._pause()

    def _pause(self) -> None:
        pause = min(FIRST_PAUSE * 2 ** min(self._failures, 16), LONGEST_PAUSE)
        self._failures += 1
        self._open_at = self._clock() + pause.total_seconds()

    def _wording(self, code: int | None) -> str:
        return self.read(readings.said, "nvmlErrorString", code).value or "no description"
