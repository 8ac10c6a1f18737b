"""The tables of artifacts: storage roots, jobs, what they brought or left half done, and files put in quarantine."""

from artifacts.models.artifacts import Artifact
from artifacts.models.half_done import HalfDone
from artifacts.models.jobs import Job
from artifacts.models.quarantine import QuarantinedFile
from artifacts.models.roots import StorageRoot

__all__ = ["Artifact", "HalfDone", "Job", "QuarantinedFile", "StorageRoot"]
