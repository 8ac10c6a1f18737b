"""Takes one sample after another of how loaded this server is: processors, memory, GPUs and the room on its volumes."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from agent import cgroups, readings, volumes, wire
from agent.gpus import Gpus
from agent.volumes import Volume
from agent.wire import MAX_VOLUMES, Reading


@dataclass(frozen=True)
class _Processors:
    """Where the counters of processor time stood."""

    at: float
    busy: float  # seconds, over the processors that this process may use
    total: float
    quota: cgroups.CpuLimit | None
    used: float | None  # seconds that the group under the quota has used


class Sampler:
    """Remembers the counters of the sample before, so that each sample tells the time between the two."""

    def __init__(
        self,
        volumes: Sequence[Volume],
        gpus: Gpus,
        root: Path = Path("/"),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._volumes = list(volumes)[:MAX_VOLUMES]
        self._gpus = gpus
        self._root = root
        self._clock = clock
        self._before = _processors(cgroups.read(root), clock())

    def sample(self, now: datetime) -> wire.Telemetry:
        """One sample of everything; never raises, and takes no longer than the bounds of GPUs and volumes allow."""
        runtime, accelerators = self._gpus.telemetry()
        return wire.Telemetry(
            at=now,
            host=self._host(),
            gpu_runtime=runtime,
            accelerators=accelerators,
            volumes=[volumes.telemetry(volume) for volume in self._volumes],
        )

    def _host(self) -> wire.HostTelemetry:
        limits = cgroups.read(self._root)
        before, self._before = self._before, _processors(limits, self._clock())
        used, available = _memory(limits.memory)
        return wire.HostTelemetry(
            cpu_percent=_percent(before, self._before),
            load_1m=_load(),
            memory_used_bytes=used,
            memory_available_bytes=available,
        )


def _processors(limits: cgroups.Limits, at: float) -> _Processors | None:
    try:
        times = psutil.cpu_times(percpu=True)
    except (OSError, ValueError, RuntimeError):
        return None
    allowed = _allowed(len(times))
    idle = sum(times[n].idle + getattr(times[n], "iowait", 0.0) for n in allowed)
    # Time of guests is counted as user time already.
    total = sum(sum(times[n]) - getattr(times[n], "guest", 0.0) - getattr(times[n], "guest_nice", 0.0) for n in allowed)
    quota = limits.cpu if limits.cpu is not None and limits.cpu.processors < len(allowed) else None
    try:
        used = None if quota is None else quota.used_seconds()
    except (OSError, ValueError):
        used = None
    return _Processors(at, total - idle, total, quota, used)


def _allowed(processors: int) -> list[int]:
    try:
        affinity = os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return list(range(processors))
    return [n for n in range(processors) if n in affinity] or list(range(processors))


def _percent(before: _Processors | None, after: _Processors | None) -> Reading[float]:
    """The share of the processors that may be used which was busy; under a quota, the share of the quota used up."""
    if before is None or after is None:
        return Reading(reason="error")
    if after.quota is not None and after.quota == before.quota and after.used is not None and before.used is not None:
        busy, possible = after.used - before.used, (after.at - before.at) * after.quota.processors
    else:
        busy, possible = after.busy - before.busy, after.total - before.total
    if possible <= 0:  # no time has passed since the sample before
        return readings.UNSUPPORTED
    return readings.number(min(100.0, max(0.0, 100 * busy / possible)))


def _load() -> Reading[float]:
    try:
        return readings.number(os.getloadavg()[0])
    except OSError as error:
        return readings.refused(error)


def _memory(limit: cgroups.MemoryLimit | None) -> tuple[Reading[int], Reading[int]]:
    """Used and available: of the limit where one is set and binds, else of the host."""
    try:
        host = psutil.virtual_memory()
        if limit is None or limit.limit_bytes >= host.total:
            return readings.size(host.used), readings.size(host.available)
        used = limit.used_bytes()
    except OSError as error:
        return readings.refused(error), readings.refused(error)
    except (ValueError, RuntimeError):
        return Reading(reason="error"), Reading(reason="error")
    return readings.size(used), readings.size(max(0, min(limit.limit_bytes - used, host.available)))
