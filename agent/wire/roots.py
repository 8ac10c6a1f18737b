"""Storage roots: which folders the control plane wants watched, and what the agent found at each."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from agent.wire.values import Bytes, Count, Path, Reading, Said, Text

RootFault = Literal[
    "missing",  # no such folder in the agent's environment
    "not_a_folder",
    "a_link",  # the path, or a folder on the way, is a symbolic link
    "outside_volumes",  # not below the agent's artifact volume
    "not_mounted",  # in a container, nothing is mounted there: what is written dies with it
    "fuse",  # a FUSE share such as Unraid's /mnt/user
    "marker_missing",
    "marker_foreign",  # it carries another root's marker
    "device_changed",
    "not_writable",
    "overdue",  # the file system does not answer
    "error",
]

MAX_ROOTS = 32  # of one node


class RootOrder(Struct, frozen=True, kw_only=True):
    """A storage root that this node shall prove and watch."""

    root_id: UUID
    path: Path  # in the agent's environment
    approve: bool = False  # take the folder as it is now: write the marker, tell its device
    device_id: Text = ""  # as recorded at the approval; both changed means another disk
    fsid: Text = ""
    replaces: Annotated[list[UUID], Meta(max_length=32)] = []  # retired roots of this folder, whose marker may go


class RootProof(Struct, frozen=True, kw_only=True):
    """What the agent found at a storage root; ``fault`` None means proven."""

    root_id: UUID
    approved: bool = False  # the marker was written by this proof
    fault: RootFault | None = None
    detail: Said = ""  # what to do about the fault
    device_id: Text = ""  # st_dev as "major:minor"
    fsid: Text = ""  # of statvfs, hex; "" where the file system has none
    filesystem: Text = ""  # "ext4"
    mount_point: Annotated[str, Meta(max_length=4096)] = ""
    total_bytes: Reading[Bytes] = Reading(reason="unsupported")
    free_bytes: Reading[Bytes] = Reading(reason="unsupported")  # what an unprivileged writer may still use
    inodes_free: Reading[Count] = Reading(reason="unsupported")
    partial_bytes: Reading[Bytes] = Reading(reason="unsupported")  # of half-done files here whose jobs do not run
