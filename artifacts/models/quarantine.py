"""Quarantine: files whose bytes were not what their repository says."""

from django.db import models

from artifacts.models.jobs import Job
from artifacts.models.roots import StorageRoot
from nodes.models import Node


class QuarantinedFile(models.Model):
    """A file whose bytes were not what its repository says, moved out of the way by the agent."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="quarantined")
    root = models.ForeignKey(StorageRoot, on_delete=models.CASCADE, related_name="quarantined")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="quarantined")
    repo_id = models.CharField(max_length=200)
    commit = models.CharField(max_length=40, blank=True)
    path = models.CharField(max_length=4096)  # in the repository
    size_bytes = models.BigIntegerField()
    expected = models.CharField(max_length=64)
    found = models.CharField(max_length=64)
    reason = models.CharField(max_length=32)
    kept = models.BooleanField(default=True)  # False: no room, only this record remains
    location = models.CharField(max_length=4096, blank=True)  # below the quarantine volume
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["node", "-at"], name="quarantine_of_a_node")]

    def __str__(self) -> str:
        return self.path
