"""Storage roots: the folders of nodes that models are brought to."""

import uuid

from django.db import models
from django.db.models import Q

from nodes.models import Node


class StorageRoot(models.Model):
    """A folder of a node that models are brought to: its host path and its container path are two facts.

    ::

        pending --proven--> verified --a fault is found--> unverified --proven as recorded--> verified
           |                                                   ^
           '------------------ a fault is found ---------------'
        any --approve again--> pending (the folder as it is now counts)          any --retire--> retired
    """

    class State(models.TextChoices):
        """What its agent proved last."""

        PENDING = "pending"  # registered; its agent has not proven it yet
        VERIFIED = "verified"
        UNVERIFIED = "unverified"  # something is wrong with it: no job runs
        RETIRED = "retired"  # no longer used; what lies there stays

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="storage_roots")
    host_path = models.CharField(max_length=4096)  # as the server knows it; nobody but people reads it
    container_path = models.CharField(max_length=4096)  # as the agent knows it
    purpose = models.CharField(max_length=64, default="artifacts")
    reserve_bytes = models.BigIntegerField(null=True)  # to be left free; this or the percentage
    reserve_percent = models.FloatField(null=True)  # of the file system's size
    ceiling_bytes = models.BigIntegerField(null=True)  # what ModelForge may fill at most; None: no ceiling

    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    approve = models.BooleanField(default=True)  # the agent shall take the folder as it is now
    fault = models.CharField(max_length=32, blank=True)  # wire.RootFault
    fault_detail = models.CharField(max_length=1000, blank=True)
    device_id = models.CharField(max_length=255, blank=True)  # as approved
    fsid = models.CharField(max_length=255, blank=True)  # as approved
    filesystem = models.CharField(max_length=255, blank=True)
    mount_point = models.CharField(max_length=4096, blank=True)
    total_bytes = models.BigIntegerField(null=True)
    free_bytes = models.BigIntegerField(null=True)
    inodes_free = models.BigIntegerField(null=True)
    partial_bytes = models.BigIntegerField(null=True)  # of half-done files whose jobs do not run
    approved_at = models.DateTimeField(null=True)
    proven_at = models.DateTimeField(null=True)  # last time that all was well
    looked_at = models.DateTimeField(null=True)  # last time that its agent looked
    retired_at = models.DateTimeField(null=True)

    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    version = models.PositiveIntegerField(default=1)  # of what operators set; the ETag of PATCH

    class Meta:
        ordering = ["container_path", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "container_path"], condition=~Q(state="retired"), name="a_path_is_one_root_of_its_node"
            ),
            models.CheckConstraint(
                name="a_reserve_is_bytes_or_percent",
                condition=Q(reserve_bytes__isnull=False, reserve_percent__isnull=True)
                | Q(reserve_bytes__isnull=True, reserve_percent__isnull=False),
            ),
            models.CheckConstraint(
                name="a_verified_root_was_approved", condition=~Q(state="verified") | Q(approved_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.container_path
