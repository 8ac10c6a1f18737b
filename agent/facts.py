"""Gathers what this server is: host, limits, GPUs and volumes, as one message for the control plane."""

import functools
import os
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psutil

from agent import cgroups, mounts, readings, wire
from agent import volumes as data_volumes
from agent.gpus import Gpus
from agent.volumes import Volume
from agent.wire import MAX_VOLUMES, Reading

__all__ = ["Volume", "gather"]

T = TypeVar("T")


def gather(
    *,
    boot_id: UUID,
    agent: wire.AgentFacts,
    hostname: str | None,
    volumes: Sequence[Volume],
    gpus: Gpus,
    now: datetime,
    root: Path = Path("/"),
) -> wire.Facts:
    """All facts, each a value or a reason. ``hostname`` None: the system's own; ``root`` holds proc, sys and etc."""
    runtime, accelerators = gpus.facts()
    return wire.Facts(
        boot_id=boot_id,
        observed_at=now,
        host=host(hostname, root),
        agent=agent,
        gpu_runtime=runtime,
        accelerators=accelerators,
        volumes=_volumes(volumes, root),
    )


def host(hostname: str | None, root: Path = Path("/")) -> wire.HostFacts:
    """The host as it shows itself, and what the container's limits leave of it."""
    limits = cgroups.read(root)
    visible = psutil.cpu_count(logical=True)
    system = os.uname()
    return wire.HostFacts(
        hostname=readings.text(hostname or socket.gethostname()) or "unnamed",
        os=_os_name(root) or readings.text(system.sysname),
        kernel=readings.text(system.release),
        architecture=readings.text(system.machine),
        cpu_model=_cpu_model(root),
        cpu_visible=readings.UNSUPPORTED if visible is None else readings.count(visible),
        cpu_limit=_cpu_limit(limits, visible),
        memory_visible_bytes=_asked(lambda: readings.size(psutil.virtual_memory().total)),
        memory_limit_bytes=readings.UNSUPPORTED if limits.memory is None else readings.size(limits.memory.limit_bytes),
        swap_bytes=_asked(lambda: readings.size(psutil.swap_memory().total)),
        limits_source=limits.source,
        booted_at=_booted_at(),
        container=mounts.in_container(root),
    )


def _volumes(named: Sequence[Volume], root: Path) -> list[wire.VolumeFacts]:
    return [data_volumes.facts(volume, root) for volume in named[:MAX_VOLUMES]]


def _cpu_limit(limits: cgroups.Limits, visible: int | None) -> Reading[float]:
    """The least of quota, cpuset and affinity, where it is less than what the host shows (a quota always is told)."""
    bounds = [
        float(n) for n in (limits.processors, _affinity()) if n is not None and visible is not None and n < visible
    ]
    if limits.cpu is not None:
        bounds.append(limits.cpu.processors)
    return readings.number(min(bounds)) if bounds else readings.UNSUPPORTED


def _affinity() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (OSError, AttributeError):  # not every system has it
        return None


def _asked(question: Callable[[], Reading[T]]) -> Reading[T]:
    try:
        return question()
    except OSError as error:
        return readings.refused(error)
    except (ValueError, RuntimeError, psutil.Error):  # psutil found the kernel's files in a shape it does not know
        return Reading(reason="error")


@functools.cache
def _booted_at() -> datetime | None:
    """When the machine booted. Asked once: the kernel's answer moves with every correction of the clock."""
    try:
        return datetime.fromtimestamp(psutil.boot_time(), UTC)
    except (OSError, RuntimeError, ValueError):
        return None


def _os_name(root: Path) -> str:
    for place in ("etc/os-release", "usr/lib/os-release"):
        for line in _lines(root / place):
            name, _, value = line.partition("=")
            if name == "PRETTY_NAME":
                return readings.text(value.strip("\"'"))
    return ""


def _cpu_model(root: Path) -> Reading[str]:
    """The processor's name; 64-bit Arm kernels tell none there, and then the board's name stands for it."""
    found = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in _lines(root / "proc/cpuinfo"))
    }
    model = found.get("model name") or found.get("Model") or "".join(_lines(root / "proc/device-tree/model"))
    return readings.said(model)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
