"""What each data volume must be before the agent starts: no host's root, mounted on its own, and writable by us."""

import errno
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from agent import volumes
from agent.record import Ephemeral, HostRoot, StateError, Unwritable, advice
from agent.volumes import Volume

WITHIN = timedelta(seconds=3)
"""For one look at one volume. A file server that hangs is told as a fact of this node; it must not keep it offline."""

VARIABLES = {
    "state": "MODELFORGE_AGENT_STATE_VOLUME",
    "hf-cache": "MODELFORGE_AGENT_HF_CACHE_VOLUME",
    "artifacts": "MODELFORGE_AGENT_ARTIFACT_VOLUME",
    "quarantine": "MODELFORGE_AGENT_QUARANTINE_VOLUME",
}
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Lasting, and the operator's to mend. A full disk is neither: it is told, and the agent goes on."""


def faults(wanted: Iterable[Volume], *, allow_ephemeral: bool, root: Path = Path("/")) -> list[StateError]:
    """What keeps the agent from starting, for every volume at once, each with its remedy; nothing where all is well."""
    found = (fault(volume, allow_ephemeral=allow_ephemeral, root=root) for volume in wanted)
    return [one for one in found if one is not None]


def fault(volume: Volume, *, allow_ephemeral: bool, root: Path = Path("/")) -> StateError | None:
    """What is wrong with one volume, or None. The write test comes last: nothing is written to what is refused."""
    path, variable = volume.path, VARIABLES[volume.name]
    if volumes.holds_a_system(path, WITHIN):
        return HostRoot(path, variable)
    if not allow_ephemeral and volumes.ephemeral(path, root, WITHIN):
        return Ephemeral(
            f"{path} is not a volume: what it holds would be lost with the container. Mount a volume there (Compose: "
            f"{variable}), or set MODELFORGE_AGENT_ALLOW_EPHEMERAL_STATE=true where that is what you want."
        )
    tried = volumes.writable(path, WITHIN)
    if tried.code in _CLOSED:
        return Unwritable(advice(path, OSError(tried.code, os.strerror(tried.code))))
    return None
