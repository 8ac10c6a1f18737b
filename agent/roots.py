"""Proves a storage root: the folder that was approved, on the disk that it was on, and nothing that only looks like it.

    <root>/.modelforge-root    the marker, mode 0444: {"root_id", "node_id", "approved_at"}

An empty folder where a disk should be mounted has no marker, so that no byte is written into it. Every call into the
file system runs aside and within a deadline: a file server that hangs is a fault with a name, and holds up nobody.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from agent import footing, marker, mounts, readings, volumes, wire
from agent.acquire.terms import Failed
from agent.bounded import Bounded, StuckError
from agent.footing import Fault
from agent.wire import Reading

T = TypeVar("T")

_FOLDER_MODE = 0o755  # whoever runs a model passes here

_lines: dict[tuple[str, str], Bounded] = {}
"""One line to each root for looks and one for writes: the file systems of a process are the process's, and a call
that hangs in one of them must be known to whoever asks next."""


@dataclass
class _Found:
    """What was seen until the first fault."""

    device_id: str = ""
    fsid: str = ""
    filesystem: str = ""
    mount_point: str = ""
    space: dict[str, Reading[int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Where this node's storage roots may lie."""

    node_id: UUID
    artifact_dir: Path
    ephemeral_ok: bool = False  # the operator wants what dies with the container
    system: Path = Path("/")  # holds proc

    def mount(self, path: str) -> mounts.Mount | None:
        """What the folder lies on, or None where the kernel does not say."""
        return mounts.covering(Path(path), self.system)

    def check_mount(self, mount: mounts.Mount | None, path: str) -> None:
        """Raises ``Fault`` where that is no place for models."""
        footing.check_mount(mount, path, ephemeral_ok=self.ephemeral_ok, root=self.system)


def prove(order: wire.RootOrder, ground: Ground, *, now: datetime, probe: bool = True) -> wire.RootProof:
    """Look at a storage root; the first fault is told with its remedy.

    An order to approve makes the folder where there is none, marks it, and tells its device. ``probe`` False leaves out
    the write, flush and removal of a small file: a job that writes there proves it better.
    """
    found = _Found()

    def told(fault: wire.RootFault | None = None, detail: str = "") -> wire.RootProof:
        return wire.RootProof(
            root_id=order.root_id,
            approved=order.approve and fault is None,
            fault=fault,
            detail=detail[:1000],
            device_id=found.device_id,
            fsid=found.fsid,
            filesystem=found.filesystem,
            mount_point=found.mount_point,
            **found.space,
        )

    try:
        below = footing.name_below(order.path, ground.artifact_dir)
        if order.approve:
            _bounded(order, "write", _taking(below, order, ground, now), volumes.WRITE_WITHIN)
        _bounded(order, "look", _looking(below, order, ground, found), volumes.LOOK_WITHIN)
        if probe:
            _bounded(order, "write", lambda: _write(ground.artifact_dir, below), volumes.WRITE_WITHIN)
    except Fault as fault:
        return told(fault.fault, fault.detail)
    return told()


def still(order: wire.RootOrder, ground: Ground, *, now: datetime) -> None:
    """The quick look before a job and before each of its files; ``Failed`` where the root is not what was approved."""
    order = wire.RootOrder(root_id=order.root_id, path=order.path, device_id=order.device_id, fsid=order.fsid)
    require(prove(order, ground, now=now, probe=False))


def require(proof: wire.RootProof) -> None:
    """Raises ``Failed`` where the proof tells a fault. A file system that does not answer may do so again later."""
    if proof.fault is not None:
        code: wire.FailureCode = "storage_error" if proof.fault == "overdue" else "root_unverified"
        raise Failed(code, f"The storage root is not proven ({proof.fault}). {proof.detail}")


def _taking(below: str, order: wire.RootOrder, ground: Ground, now: datetime) -> Callable[[], None]:
    def work() -> None:
        with footing.tree(ground.artifact_dir) as tree:
            footing.check_way(tree, below, must_exist=False)
            ground.check_mount(ground.mount(order.path), order.path)  # before anything is made there
            if below:
                tree.mkdirs(below, _FOLDER_MODE)
            marker.take(tree, below, root_id=order.root_id, node_id=ground.node_id, now=now, replaces=order.replaces)

    return work


def _looking(below: str, order: wire.RootOrder, ground: Ground, found: _Found) -> Callable[[], None]:
    def work() -> None:
        with footing.tree(ground.artifact_dir) as tree:
            footing.check_way(tree, below, must_exist=True)
            with tree.folder(below) as fd:
                status, space = os.fstat(fd), os.fstatvfs(fd)
            found.device_id = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
            found.fsid = f"{space.f_fsid & (2**64 - 1):x}" if space.f_fsid else ""
            found.space = _space(space)
            mount = ground.mount(order.path)
            if mount is not None:
                found.filesystem = readings.text(mount.filesystem)
                found.mount_point = readings.text(str(mount.point), 4096)
            ground.check_mount(mount, order.path)
            marker.check(tree, below, root_id=order.root_id, node_id=ground.node_id)
            footing.check_device(order, found.device_id, found.fsid)

    return work


def _write(artifact_dir: Path, below: str) -> None:
    """Make, flush and remove a small file. A full disk is no fault of the root: its free space says so."""
    with footing.tree(artifact_dir) as tree, tree.folder(below) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            probe = os.open(volumes.PROBE_NAME, flags, 0o600, dir_fd=folder)
            try:
                os.write(probe, b"modelforge\n")
                os.fsync(probe)
            finally:
                os.close(probe)
                with suppress(FileNotFoundError):
                    os.unlink(volumes.PROBE_NAME, dir_fd=folder)
        except OSError as error:
            if error.errno not in footing.FULL:
                raise


def _space(space: os.statvfs_result) -> dict[str, Reading[int]]:
    return {
        "total_bytes": readings.size(space.f_blocks * space.f_frsize),
        "free_bytes": readings.size(space.f_bavail * space.f_frsize),
        "inodes_free": readings.count(space.f_favail) if space.f_files else readings.UNSUPPORTED,
    }


def _bounded(order: wire.RootOrder, kind: str, work: Callable[[], T], within: timedelta) -> T:
    line = _lines.setdefault((order.path, kind), Bounded(f"root-{kind}"))
    try:
        return line.call(work, within)
    except StuckError as stuck:
        text = f"Its file system has not answered for {stuck.waited.total_seconds():.0f} s. Look at the disk or server."
        raise Fault("overdue", text) from None
    except OSError as error:
        raise footing.fault_of(error) from error
    except RuntimeError:  # no thread to be had
        raise Fault("error", "The system gives this agent no more threads.") from None
