"""One value in one file: read, healed from its last good copy, and replaced so that a power cut leaves old or new."""

import errno
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from agent import atomic

log = logging.getLogger(__name__)

_CREDENTIAL = re.compile(r"mfn_[A-Za-z0-9]+_[A-Za-z0-9_\-]+_[A-Za-z0-9]+")
_CREDENTIAL_LENGTH = range(20, 257)
_MAX_FILE_BYTES = 4096


class StateError(Exception):
    """The state folder cannot be used; the text says why and what to do.

    StateError
    ├── Unwritable   exit 74: no right to write, read-only, full, or not a folder
    ├── Busy         exit 75: another agent runs on this folder
    ├── Ephemeral    exit 78: the folder dies with the container
    ├── HostRoot     exit 78: the folder is the root of a whole system
    └── Corrupt      exit 78: a file is damaged and there is no good copy (`state_corrupt`)
    """

    exit_code = 74


class Unwritable(StateError):
    """The folder or a file in it cannot be read or written by this user."""


class Busy(StateError):
    """Another agent holds the folder's lock."""

    exit_code = 75


class Ephemeral(StateError):
    """The folder would be lost with the container, and with it the node's identity."""

    exit_code = 78


class HostRoot(StateError):
    """The folder is the root of a whole system, which must never be an agent's to write to."""

    exit_code = 78

    def __init__(self, path: Path, variable: str) -> None:
        super().__init__(
            f"{path} is the root of a whole system: what the agent writes and removes there would be the host's. "
            "Nothing was changed. Mount a narrow folder made for it (Compose: "
            f"{variable}=/srv/modelforge-node-agent/{path.name})."
        )


class Corrupt(StateError):
    """A state file is damaged, or one is missing that must be there."""

    exit_code = 78


def is_credential(text: str) -> bool:
    """Whether the text has the shape of a node credential; only the control plane knows whether it is one."""
    return len(text) in _CREDENTIAL_LENGTH and _CREDENTIAL.fullmatch(text) is not None


def is_node_id(text: str) -> bool:
    """Whether the text is a UUID in its usual form."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


Stamp = tuple[int, int, int]
"""Inode, modification time and size: differs whenever a file was replaced or rewritten."""


class Record:
    """One value in one file, with the last good copy beside it."""

    def __init__(self, path: Path, valid: Callable[[str], bool]) -> None:
        self.path = path
        self.previous = path.with_name(f"{path.name}.previous")
        self._valid = valid

    def stamp(self) -> Stamp | None:
        """What the file looks like from outside, or None where there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def peek(self) -> str | None:
        """The value, or None where the file is missing or damaged; changes nothing."""
        return self._good(self.path)

    def recover(self) -> str | None:
        """The value, healed from the previous copy where damaged or gone; None where there never was one."""
        value = self._good(self.path)
        if value is not None:
            self._tighten()
            return value
        damaged = self.path.exists()
        value = self._good(self.previous)
        if value is None:
            if damaged or self.previous.exists():
                raise Corrupt(
                    f"state_corrupt: {self.path} is damaged and there is no good copy of it. Nothing was changed and "
                    "no new identity was made. Restore the state folder from a backup; or write the value back by hand "
                    "(the node's id stands on its page); or, to join as a new node on purpose, empty the folder."
                )
            return None
        if damaged:
            os.replace(self.path, self.path.with_name(f"{self.path.name}.damaged"))
        atomic.write(self.path, f"{value}\n", durable=True)
        log.warning("%s was %s; restored from %s", self.path, "damaged" if damaged else "gone", self.previous.name)
        return value

    def keep(self, value: str) -> None:
        """Store a new value; the one before stays as the previous copy until the new one is known to be good."""
        before = self._good(self.path)
        if before is not None and before != value:
            atomic.write(self.previous, f"{before}\n", durable=True)
        atomic.write(self.path, f"{value}\n", durable=True)

    def confirm(self) -> None:
        """The value is known to be good: make the previous copy the same."""
        value = self._good(self.path)
        if value is not None and self._good(self.previous) != value:
            atomic.write(self.previous, f"{value}\n", durable=True)

    def _good(self, path: Path) -> str | None:
        try:
            with path.open("rb") as file:
                raw = file.read(_MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unwritable(advice(path, error)) from error
        try:
            text = raw.decode("ascii").strip()
        except UnicodeDecodeError:
            return None
        return text if self._valid(text) else None

    def _tighten(self) -> None:
        try:
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        except OSError as error:
            log.warning("%s is readable by others and its mode cannot be changed: %s", self.path, error.strerror)


def advice(path: Path, error: OSError) -> str:
    """The operating system's error, who we are, and the very command that mends it."""
    uid, gid = os.geteuid(), os.getegid()
    start = f"{path} cannot be read and written by uid {uid} (gid {gid}): {error.strerror}. "
    if error.errno == errno.EROFS:
        return start + "It is mounted read-only: remove :ro from the volume, or remount its file system."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return start + "Its file system is full: free some space there."
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return start + "A file is in its place: move it away."
    target = path if path.is_dir() or not path.exists() else path.parent
    return start + (
        f"Run: chown -R {uid}:{gid} {target} (on the host: the folder mounted there) && chmod u+rwX {target}"
    )
