"""The named data volumes: where they are mounted, how full they are, and whether they can be written to."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from agent import mounts, readings, wire
from agent.bounded import Bounded, StuckError
from agent.wire import Reading

T = TypeVar("T")

LOOK_WITHIN = timedelta(seconds=5)
WRITE_WITHIN = timedelta(seconds=30)  # a disk that is busy with a download takes its time over an fsync
PROBE_NAME = ".modelforge-write-test"


_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)

_lines: dict[tuple[Path, str], Bounded] = {}
"""One line to each volume for looks and one for writes: the file systems of a process are the process's, and a call
that hangs in one of them must be known to whoever asks next."""


@dataclass(frozen=True)
class Volume:
    """A data volume by the name that people know, and where this process finds it."""

    name: str
    path: Path


def facts(volume: Volume, root: Path = Path("/")) -> wire.VolumeFacts:
    """What the volume is. Writes, flushes and removes one small file in it; a file server that hangs is a reason."""
    path = volume.path
    status = _ask(path, "look", lambda: _stat(path), LOOK_WITHIN)
    space = _ask(path, "look", lambda: os.statvfs(path), LOOK_WITHIN)
    mount = _ask(path, "look", lambda: _mount(path, root), LOOK_WITHIN) if status.value is not None else status
    return wire.VolumeFacts(
        name=readings.text(volume.name) or "unnamed",
        path=readings.text(str(path), 4096) or "/",
        is_mount=_of(mount, lambda m: readings.UNSUPPORTED if m.filesystem is None else Reading(value=m.here)),
        filesystem=_of(mount, lambda m: readings.UNSUPPORTED if m.filesystem is None else readings.said(m.filesystem)),
        device_id=_of(status, lambda s: readings.said(f"{os.major(s.st_dev)}:{os.minor(s.st_dev)}")),
        writable=_of(status, lambda _: writable(path)),
        total_bytes=_of(space, lambda s: readings.size(s.f_blocks * s.f_frsize)),
        free_bytes=_of(space, _free),
        inodes_total=_of(space, lambda s: readings.count(s.f_files) if s.f_files else readings.UNSUPPORTED),
        inodes_free=_of(space, lambda s: readings.count(s.f_favail) if s.f_files else readings.UNSUPPORTED),
    )


def telemetry(volume: Volume) -> wire.VolumeTelemetry:
    """How full the volume is."""
    space = _ask(volume.path, "look", lambda: os.statvfs(volume.path), LOOK_WITHIN)
    return wire.VolumeTelemetry(name=readings.text(volume.name) or "unnamed", free_bytes=_of(space, _free))


def holds_a_system(path: Path, within: timedelta = LOOK_WITHIN) -> bool:
    """Whether a host's root is mounted there; a file server that does not answer is none."""
    return _ask(path, "look", lambda: mounts.holds_a_system(path), within).value is True


def ephemeral(path: Path, root: Path = Path("/"), within: timedelta = LOOK_WITHIN) -> bool:
    """Whether what is written there dies with the container; a file server that does not answer outlives it."""
    return _ask(path, "look", lambda: mounts.ephemeral(path, root), within).value is True


def _stat(path: Path) -> os.stat_result:
    return os.stat(path)


def _free(space: os.statvfs_result) -> Reading[int]:
    """What one who is not root may still use."""
    return readings.size(space.f_bavail * space.f_frsize)


def _of(answer: Reading[Any], take: Callable[[Any], Reading[T]]) -> Reading[T]:
    return answer if answer.value is None else take(answer.value)


@dataclass(frozen=True)
class _Mounted:
    filesystem: str | None  # None: the kernel does not say
    here: bool = False  # the path itself is the mount point


def _mount(path: Path, root: Path) -> _Mounted:
    mount = mounts.covering(path, root)
    if mount is None:
        return _Mounted(None)
    return _Mounted(mount.filesystem, here=mount.point == Path(os.path.realpath(path)))


def _ask(path: Path, kind: str, work: Callable[[], T], within: timedelta) -> Reading[T]:
    line = _lines.setdefault((path, kind), Bounded(f"volume-{kind}"))
    try:
        return Reading(value=line.call(work, within))
    except StuckError:
        return readings.overdue()
    except OSError as error:
        return readings.refused(error)
    except RuntimeError:  # no thread to be had
        return Reading(reason="error", code=errno.EAGAIN)


def writable(path: Path, within: timedelta = WRITE_WITHIN) -> Reading[bool]:
    """Whether a file can be made, flushed and removed; False carries the errno that says why not."""
    tried: Reading[bool] = _ask(path, "write", lambda: _write(path), within)
    if tried.reason is not None and tried.code in _UNWRITABLE:
        return Reading(value=False, code=tried.code)
    return tried


def _write(path: Path) -> bool:
    probe = path / PROBE_NAME
    # One fixed name: what a power cut leaves behind is used again and removed by the next try.
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b"modelforge\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):  # another agent on the same volume removed it first
            probe.unlink()
    return True
