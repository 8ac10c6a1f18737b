"""The state folder: the node's identity and credential on disk, safe from power cuts, mistakes and second agents.

    <state>/node-id                    the UUID that this server is known by
    <state>/node-credential            mfn_..., one line; a human or `credential set` may replace it at any time
    <state>/*.previous                 the last copy known to be good; a damaged file is healed from it
    <state>/*.damaged                  what a healed file held before, for whoever wants to look
    <state>/lock                       a kernel lock (flock) of the one agent that runs on this folder

All files have mode 0600. Nothing here is ever deleted, and a damaged identity is never replaced by a new one.
"""

import fcntl
import logging
import os
from pathlib import Path
from typing import IO
from uuid import UUID

from agent import atomic
from agent.mounts import ephemeral, holds_a_system
from agent.record import Busy, Corrupt, Ephemeral, HostRoot, Record, Unwritable, advice, is_credential, is_node_id

log = logging.getLogger(__name__)


class State:
    """The state folder of one node. Make it with ``prepare()`` before anything is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ephemeral = False
        self.credential = Record(folder / "node-credential", is_credential)
        self._node_id = Record(folder / "node-id", is_node_id)
        self._lock: IO[str] | None = None

    def prepare(self, *, allow_ephemeral: bool, root: Path = Path("/")) -> None:
        """Prove that the folder can be written and outlives the container, before anything depends on it."""
        if holds_a_system(self.folder):  # before the first write, and before any advice to change rights there
            raise HostRoot(self.folder, "MODELFORGE_AGENT_STATE_VOLUME")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.folder / ".preflight"
            atomic.write(probe, "written at start to prove that this folder can be written\n", durable=True)
            probe.unlink()
        except OSError as error:
            raise Unwritable(advice(self.folder, error)) from error
        self.ephemeral = ephemeral(self.folder, root)
        if self.ephemeral and not allow_ephemeral:
            raise Ephemeral(
                f"{self.folder} is not a volume: this node's identity would be lost with the container. Mount a volume "
                f"there (Compose: MODELFORGE_AGENT_STATE_VOLUME), or set MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE=true "
                "where a new node at every start is what you want."
            )

    def lock(self) -> None:
        """Hold the folder for this process alone until it ends, however it ends."""
        file = (self.folder / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(32).strip() or "unknown"
            file.close()
            raise Busy(
                f"Another agent (process {holder}) runs on {self.folder}. Stop it first, or give this one a state "
                "folder of its own; a copied folder is a copied identity."
            ) from None
        except OSError as error:
            log.warning(
                "%s cannot be locked (%s); a second agent on it would not be noticed", self.folder, error.strerror
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        self._lock = file

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def node_id(self) -> UUID | None:
        """The stored identity; None on a server that never asked to join. Never a new one in place of a damaged one."""
        text = self._node_id.recover()
        if text is not None:
            self._node_id.confirm()
            return UUID(text)
        if self.credential.path.exists() or self.credential.previous.exists():
            raise Corrupt(
                f"state_corrupt: {self._node_id.path} is gone while a credential is there. No new identity was made. "
                "Restore it from a backup, or write the node's id (it stands on the node's page) into that file; or, "
                "to join as a new node on purpose, empty the folder."
            )
        return None

    def known_id(self) -> str | None:
        """The stored identity for who only looks: nothing is healed, nothing is refused."""
        return self._node_id.peek()

    def keep_node_id(self, node_id: UUID) -> None:
        """Store the identity, once."""
        self._node_id.keep(str(node_id))
        self._node_id.confirm()
