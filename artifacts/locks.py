"""The rows that an act holds until its transaction ends, always in the order node, storage root, job."""

from typing import Any
from uuid import UUID

from agent.protocol import Code
from artifacts.models import Artifact, Job, StorageRoot
from nodes.callers import Refused
from nodes.models import Node


def node(key: UUID) -> Node:
    """The node's row: whoever holds it decides about all roots and jobs of that node."""
    return Node.objects.select_for_update().defer("facts", "labels").get(pk=key)


def node_in_service(key: UUID) -> Node:
    """The node's row, where work may be given to it.

    Raises:
        Refused: ``state_conflict`` where it is retired or disabled.
    """
    found = node(key)
    if found.retired_at is not None:
        raise Refused(Code.STATE_CONFLICT, f"{found} was retired, which is final: nothing can be ordered from it.")
    if not found.enabled:
        raise Refused(Code.STATE_CONFLICT, f"{found} is disabled. Enable it first: a disabled node does no work.")
    return found


def root(key: UUID) -> StorageRoot:
    """The root's row, where it is still in use; its node is held already.

    Raises:
        Refused: ``state_conflict`` where it is retired.
    """
    found = StorageRoot.objects.select_for_update().get(pk=key)
    if found.state == StorageRoot.State.RETIRED:
        raise Refused(Code.STATE_CONFLICT, f"The storage root {found} was retired. Register the folder again.")
    return found


def verified_root(key: UUID) -> StorageRoot:
    """The root's row, where jobs may run in it.

    Raises:
        Refused: ``state_conflict`` where it is retired, ``root_unverified`` where its agent has not proven it.
    """
    found = root(key)
    if found.state == StorageRoot.State.PENDING:
        detail = f"The storage root {found} is not verified yet: its agent looks at it with its next heartbeat."
        raise Refused(Code.ROOT_UNVERIFIED, detail)
    if found.state != StorageRoot.State.VERIFIED:
        why = f"{found.fault}: {found.fault_detail}" if found.fault_detail else found.fault
        detail = f"The storage root {found} is not verified ({why}). Mend it on the server, or approve it again."
        raise Refused(Code.ROOT_UNVERIFIED, detail)
    return found


def job(key: UUID) -> Job:
    """The job's row; its node is held already."""
    return Job.objects.select_for_update().get(pk=key)


def artifact(key: UUID) -> Artifact:
    """The artifact's row; its node is held already."""
    return Artifact.objects.select_for_update().get(pk=key)


def change(row: Job | StorageRoot | Artifact, **fields: Any) -> None:
    """Store these fields of a row that is held."""
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=list(fields))
