"""The tables of artifacts: storage roots, jobs, published snapshots, and files that were put in quarantine."""

import uuid

from django.db import models
from django.db.models import F, Q

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
