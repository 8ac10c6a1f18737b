"""Artifacts: the snapshots that agents published."""

import uuid

from django.db import models

from artifacts.models.roots import StorageRoot
from nodes.models import Node


class Artifact(models.Model):
    """A snapshot that an agent published in a root, whole and verified: one row for each commit and selection.

    ::

        published --verify finds a fault--> damaged --acquired or verified again--> published
            '------------------ remove ------------'--> removed --acquired again--> published
    """

    class State(models.TextChoices):
        """What is known of its bytes."""

        PUBLISHED = "published"
        DAMAGED = "damaged"
        REMOVED = "removed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="artifacts")
    root = models.ForeignKey(StorageRoot, on_delete=models.CASCADE, related_name="artifacts")
    repo_id = models.CharField(max_length=200)
    revision = models.CharField(max_length=250)  # as it was ordered last
    commit = models.CharField(max_length=40)
    selection = models.CharField(max_length=64, blank=True)  # digest of the patterns; "" for all files
    snapshot = models.CharField(max_length=4096)  # below the root
    manifest_sha256 = models.CharField(max_length=64)
    files = models.BigIntegerField()
    bytes = models.BigIntegerField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.PUBLISHED)
    damaged = models.JSONField(default=list, blank=True)  # files that the last verification found wrong
    published_at = models.DateTimeField()
    verified_at = models.DateTimeField()  # every byte was read and right
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["repo_id", "-published_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["root", "repo_id", "commit", "selection"], name="a_snapshot_is_one_artifact_of_its_root"
            ),
        ]
        indexes = [models.Index(fields=["repo_id", "commit"], name="artifacts_by_snapshot")]

    def __str__(self) -> str:
        return f"{self.repo_id} @ {self.commit[:12]}"
