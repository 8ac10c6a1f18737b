"""Jobs: what was ordered from nodes, how far it is, and what came of it."""

import uuid

from django.db import models
from django.db.models import F, Q

from artifacts.models.artifacts import Artifact
from artifacts.models.roots import StorageRoot
from nodes.models import Node


class Job(models.Model):
    """One typed order for one node; the node's row is the lock, and the lease's id fences every later word.

    ::

        queued --claim--> running --result--> succeeded | failed | cancelled
           ^                 |
           |                 |-- passing failure, attempts left: after a pause
           |                 |-- given back by an agent that stops: at once; again and again: after a pause
           '-----------------'-- lease over: at once, one attempt
        queued --cancel--> cancelled          running --cancel--> running, told to stop
        failed | cancelled --retry--> queued
    """

    class State(models.TextChoices):
        """Where it stands."""

        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"

    ACTIVE = (State.QUEUED, State.RUNNING)
    RETRIABLE = (State.FAILED, State.CANCELLED)  # its half-done files are kept for a while

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    type = models.CharField(max_length=64)  # wire.JobType
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="jobs")
    root = models.ForeignKey(StorageRoot, on_delete=models.CASCADE, related_name="jobs")
    artifact = models.ForeignKey(Artifact, null=True, on_delete=models.RESTRICT, related_name="jobs")
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)

    repo_id = models.CharField(max_length=200)
    revision = models.CharField(max_length=250)
    commit = models.CharField(max_length=40, blank=True)  # pinned before the first byte
    allow_patterns = models.JSONField(default=list, blank=True)
    ignore_patterns = models.JSONField(default=list, blank=True)
    selection = models.CharField(max_length=64, blank=True)  # digest of the patterns; "" for all files
    allow_formats = models.JSONField(default=list, blank=True)  # wire.Format, allowed by name
    preflight_only = models.BooleanField(default=False)
    reason = models.CharField(max_length=255, blank=True)  # why it was ordered, told in the history

    attempt = models.PositiveIntegerField(default=0)  # attempts begun
    spent = models.PositiveIntegerField(default=0)  # attempts that count against the bound
    max_attempts = models.PositiveIntegerField(default=5)
    not_before = models.DateTimeField(null=True)  # a pause after a passing failure
    boot_id = models.UUIDField(null=True)  # of the agent process that holds it
    lease_id = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    answered_lease_id = models.UUIDField(null=True)  # whose result counted last; told again, it changes nothing
    bytes_at_claim = models.BigIntegerField(default=0)  # how far it was then: a crash that got further costs nothing
    fruitless = models.PositiveIntegerField(default=0)  # claims in a row that got no further
    given_back = models.PositiveIntegerField(default=0, db_default=0)  # so often in a row, and it got no further
    cancel_requested_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=255, blank=True)

    phase = models.CharField(max_length=16, blank=True)  # wire.Phase
    bytes_total = models.BigIntegerField(default=0)
    bytes_done = models.BigIntegerField(default=0)
    bytes_fetched = models.BigIntegerField(default=0)  # over the network, all attempts together
    bytes_fetched_before = models.BigIntegerField(default=0)  # by the attempts before this one
    bytes_reused = models.BigIntegerField(default=0)
    files_total = models.BigIntegerField(default=0)
    files_done = models.BigIntegerField(default=0)
    bytes_per_second = models.FloatField(default=0)
    eta_seconds = models.FloatField(null=True)
    progress_at = models.DateTimeField(null=True)  # last word of the agent
    course = models.JSONField(default=list, blank=True)  # [[epoch seconds, bytes done, bytes per second]], at most 120

    failure_code = models.CharField(max_length=32, blank=True)  # of the last attempt that failed
    failure_detail = models.CharField(max_length=1000, blank=True)
    failure_numbers = models.JSONField(default=dict, blank=True)
    dismissed_at = models.DateTimeField(null=True)  # an operator has seen that it failed, and wants no more of it
    dismissed_by = models.CharField(max_length=255, blank=True, default="", db_default="")
    preflight = models.JSONField(null=True)  # wire.Preflight
    verified = models.JSONField(null=True)  # wire.Verified

    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    started_at = models.DateTimeField(null=True)  # first claim
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["node"], condition=Q(state="running"), name="one_running_job_per_node"),
            models.UniqueConstraint(
                fields=["root", "type", "repo_id", "revision", "selection", "preflight_only"],
                condition=Q(state__in=["queued", "running"], type="artifact.acquire.v1"),
                name="one_active_order_per_snapshot",
            ),
            models.UniqueConstraint(
                fields=["artifact", "type"],
                condition=Q(state__in=["queued", "running"], artifact__isnull=False),
                name="one_active_order_per_artifact_and_type",
            ),
            models.CheckConstraint(
                name="a_running_job_has_a_lease",
                condition=~Q(state="running") | Q(lease_id__isnull=False, lease_expires_at__isnull=False),
            ),
            models.CheckConstraint(
                name="a_finished_job_has_an_end",
                condition=Q(state__in=["queued", "running"], finished_at__isnull=True)
                | Q(state__in=["succeeded", "failed", "cancelled"], finished_at__isnull=False),
            ),
            models.CheckConstraint(
                name="an_order_about_a_snapshot_names_it",
                condition=Q(type="artifact.acquire.v1") | Q(artifact__isnull=False),
            ),
            models.CheckConstraint(name="no_more_is_done_than_there_is", condition=Q(bytes_done__lte=F("bytes_total"))),
        ]
        indexes = [
            models.Index(fields=["node", "state", "created_at"], name="jobs_of_a_node"),
            models.Index(fields=["state", "lease_expires_at"], name="jobs_by_lease"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.repo_id}"
