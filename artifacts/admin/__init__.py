"""The pages of artifacts: storage roots, jobs, what was published; and their parts of a node's page."""

from artifacts.admin import panels
from artifacts.admin.artifacts import ArtifactAdmin
from artifacts.admin.job_list import JobAdmin
from artifacts.admin.roots import StorageRootAdmin

__all__ = ["ArtifactAdmin", "JobAdmin", "StorageRootAdmin", "panels"]
