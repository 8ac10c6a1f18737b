"""The tables of artifacts: storage roots, jobs, published snapshots, and files that were put in quarantine."""

from artifacts.models.artifacts import Artifact
from artifacts.models.jobs import Job
from artifacts.models.quarantine import QuarantinedFile
from artifacts.models.roots import StorageRoot

__all__ = ["Artifact", "Job", "QuarantinedFile", "StorageRoot"]
