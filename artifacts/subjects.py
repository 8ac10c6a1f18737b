"""How the history names a job, a storage root and an artifact."""

from artifacts.models import Artifact, Job, StorageRoot
from nodes.audit import Subject


def job(job: Job) -> Subject:
    """A job by its type and repository."""
    return Subject("job", str(job.pk), str(job), job.node_id)


def root(root: StorageRoot) -> Subject:
    """A storage root by its path in the agent's environment."""
    return Subject("storage_root", str(root.pk), root.container_path, root.node_id)


def artifact(artifact: Artifact) -> Subject:
    """An artifact by its repository and commit."""
    return Subject("artifact", str(artifact.pk), str(artifact), artifact.node_id)
