"""Where an artifact stands now: its state, or gone, where its root or node was retired and nobody watches it any more.

What was last known of one that is gone stays in its row. It lies in no total, and the same snapshot found again in the
same folder, registered anew, is another row, which counts.
"""

from django.db.models import Q

from artifacts.models import Artifact, StorageRoot

GONE = "gone"
STATES: tuple[str, ...] = (*Artifact.State.values, GONE)

_WATCHED = ~Q(root__state=StorageRoot.State.RETIRED) & Q(node__retired_at=None)
HERE = ~Q(state=Artifact.State.REMOVED) & _WATCHED
"""What lies on a node, as far as anybody can know."""


def of(artifact: Artifact) -> str:
    """One of ``STATES``; its root and node are at hand."""
    retired = artifact.root.state == StorageRoot.State.RETIRED or artifact.node.retired_at is not None
    return GONE if retired and artifact.state != Artifact.State.REMOVED else artifact.state


def shows(state: str) -> Q:
    """The artifacts that show a state of ``STATES``."""
    if state == GONE:
        return ~Q(state=Artifact.State.REMOVED) & ~_WATCHED
    return Q(state=state) if state == Artifact.State.REMOVED else Q(state=state) & _WATCHED
