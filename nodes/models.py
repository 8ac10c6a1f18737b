"""The registry's tables: nodes, their heartbeats and boots, accelerators, volumes, samples, and the history."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from nodes.event_types import EventType
from nodes.liveness import Deadlines, Liveness, seen_at

LIVENESS = [(state.value, state.value) for state in Liveness]


class CredentialState(models.TextChoices):
    """The credential's axis of a node, written by ``enrollment.credentials`` alone."""

    ACTIVE = "active"  # one credential, issued or in use
    ROTATING = "rotating"  # a new one is out and unused; the old one still works until the overlap ends
    REVOKED = "revoked"  # none works: enroll again


class Node(models.Model):
    """One GPU server, known by the UUID in its state volume; what changes with every beat lives in ``Heartbeat``."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    display_name = models.CharField(max_length=255)
    hostname = models.CharField(max_length=255)
    role = models.CharField(max_length=64, blank=True)
    labels = models.JSONField(default=dict, blank=True)  # str -> str
    production_eligible = models.BooleanField(default=False)
    lab_eligible = models.BooleanField(default=False)
    benchmark_eligible = models.BooleanField(default=False)

    enabled = models.BooleanField(default=True)
    enabled_reason = models.CharField(max_length=255, blank=True)  # of the last disable or enable
    retired_at = models.DateTimeField(null=True, blank=True)
    credential_state = models.CharField(max_length=16, choices=CredentialState.choices, default=CredentialState.ACTIVE)
    rotation_ends_at = models.DateTimeField(null=True, blank=True)  # when the old credential dies at the latest

    identity_conflict_at = models.DateTimeField(null=True, blank=True)  # a copy of this identity speaks
    identity_conflict = models.JSONField(default=dict, blank=True)  # addresses and boot ids of the copy
    protocol_refused_at = models.DateTimeField(null=True, blank=True)
    protocol_refused = models.CharField(max_length=32, blank=True)  # what its header said; "none" for no header
    refused_at = models.DateTimeField(
        null=True, blank=True
    )  # last contact that was refused, cleared by one that is not
    refused_code = models.CharField(max_length=32, blank=True)
    history_owed_until = models.DateTimeField(null=True, blank=True)  # nodes.allowance; None: it owes nothing
    held_back_at = models.DateTimeField(null=True, blank=True)  # it told more than the history takes of one node
    history_untold = models.JSONField(null=True, blank=True)  # type -> how many were counted instead of told

    agent_version = models.CharField(max_length=64, blank=True)
    protocol_version = models.PositiveIntegerField(null=True, blank=True)
    address = models.CharField(max_length=64, blank=True)  # where its present boot was first heard from
    facts = models.JSONField(null=True, blank=True)  # the newest wire.Facts as JSON
    facts_at = models.DateTimeField(null=True, blank=True)
    facts_digest = models.CharField(max_length=64, blank=True)
    want_facts = models.BooleanField(default=False)
    work_waits = models.BooleanField(
        default=False, db_default=False
    )  # at agent/jobs/claim: a job, or a storage root to look at

    enrolled_at = models.DateTimeField()
    updated_at = models.DateTimeField()  # of the last change by an operator
    version = models.PositiveIntegerField(default=1)  # of what operators set; the ETag of PATCH

    class Meta:
        ordering = ["display_name", "id"]
        constraints = [
            models.CheckConstraint(
                name="a_rotating_node_has_a_deadline",
                condition=~Q(credential_state=CredentialState.ROTATING) | Q(rotation_ends_at__isnull=False),
            ),
            models.CheckConstraint(name="a_node_has_a_name", condition=~Q(display_name="")),
        ]

    def __str__(self) -> str:
        return self.display_name


class Heartbeat(models.Model):
    """What changes with every beat: a narrow row, rewritten in place (PostgreSQL: HOT, so nothing here is indexed)."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, primary_key=True, related_name="heartbeat")
    # The three columns that each sweep reads stand first, for rows are read from the left.
    stale_at = models.DateTimeField(null=True)
    offline_at = models.DateTimeField(null=True)
    liveness = models.CharField(max_length=8, choices=LIVENESS, default=Liveness.OFFLINE)
    boot_id = models.UUIDField(null=True)
    sequence = models.BigIntegerField(default=0)
    last_heard_at = models.DateTimeField(null=True)  # None: invited, never heard
    interval_seconds = models.FloatField(default=0)  # what the node was told last
    clock_skew_seconds = models.FloatField(null=True)  # agent's clock less ours, travel time included
    online_since = models.DateTimeField(null=True)  # first beat of the present run
    stopped_at = models.DateTimeField(null=True)  # a planned stop: the agent said goodbye
    stop_reason = models.CharField(max_length=128, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="a_heard_node_has_deadlines",
                condition=Q(liveness=Liveness.OFFLINE) | Q(stale_at__isnull=False, offline_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.liveness} {self.node_id}"

    def deadlines(self) -> Deadlines | None:
        """The two deadlines, or None before the first beat."""
        if self.stale_at is None or self.offline_at is None:
            return None
        return Deadlines(self.stale_at, self.offline_at)

    def seen_at(self, now: datetime) -> Liveness:
        """The liveness to show at ``now``."""
        return seen_at(Liveness(self.liveness), self.deadlines(), now)


class BootSession(models.Model):
    """One process start of an agent; a boot that was superseded and speaks again is a copy of the identity."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="boots")
    boot_id = models.UUIDField()
    first_heard_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)
    address = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-first_heard_at"]
        constraints = [models.UniqueConstraint(fields=["node", "boot_id"], name="a_boot_is_known_once_per_node")]

    def __str__(self) -> str:
        return str(self.boot_id)


class ControlPlane(models.Model):
    """The control plane's own one row: when it last swept, and what it grants."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    swept_at = models.DateTimeField(null=True)
    unswept_since = models.DateTimeField(null=True)  # the last time that sweeps were too far apart, whoever was heard:
    unswept_until = models.DateTimeField(null=True)  # the worker was away, or the clock was set forward
    counted_at = models.DateTimeField(null=True)
    fleet = models.PositiveIntegerField(default=0)
    interval_seconds = models.FloatField(default=0)  # what nodes are granted now; 0 before the first sweep

    class Meta:
        constraints = [models.CheckConstraint(name="there_is_one_control_plane", condition=Q(id=1))]

    def __str__(self) -> str:
        return "control plane"


class Accelerator(models.Model):
    """A GPU or MIG instance that was seen in a node; one that vanished stays, missing."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="accelerators")
    key = models.CharField(max_length=128)  # wire.AcceleratorFacts.key
    identity = models.CharField(max_length=16)  # "uuid", "pci_bus_id" or "index"
    kind = models.CharField(max_length=8)  # "gpu" or "mig"
    parent = models.CharField(max_length=128, blank=True)
    index = models.PositiveBigIntegerField()
    uuid = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    pci_bus_id = models.CharField(max_length=255, blank=True)
    memory_bytes = models.BigIntegerField(null=True)  # None: the reason stands in ``facts``
    memory_model = models.CharField(max_length=16)
    driver_version = models.CharField(max_length=255, blank=True)
    facts = models.JSONField()  # wire.AcceleratorFacts as JSON: each a value or a reason
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    missing_since = models.DateTimeField(null=True)

    class Meta:
        ordering = ["index", "key"]
        constraints = [models.UniqueConstraint(fields=["node", "key"], name="an_accelerator_is_known_once_per_node")]

    def __str__(self) -> str:
        return self.model or self.key


class Volume(models.Model):
    """One of the named data volumes of a node, as its agent last described it."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="volumes")
    name = models.CharField(max_length=255)
    path = models.CharField(max_length=4096)
    filesystem = models.CharField(max_length=255, blank=True)
    total_bytes = models.BigIntegerField(null=True)
    free_bytes = models.BigIntegerField(null=True)
    facts = models.JSONField()  # wire.VolumeFacts as JSON
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["node", "name"], name="a_volume_is_known_once_per_node")]

    def __str__(self) -> str:
        return self.name


class TelemetrySample(models.Model):
    """What one node measured at one instant; raw for a day, thinned for a month, then gone."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()  # by the control plane's clock
    thinned = models.BooleanField(default=False)  # stands for the samples around it
    data = models.JSONField()  # wire.Telemetry as JSON

    class Meta:
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["node", "-at"], name="samples_of_a_node_by_time"),
            models.Index(fields=["thinned", "at"], name="samples_by_age"),  # what to thin out, what to drop
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.at:%Y-%m-%d %H:%M:%S}"


class AuditHead(models.Model):
    """The end of the history's chain: the row that a writer locks, and that proves nothing was cut off."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    position = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.CheckConstraint(name="the_history_has_one_head", condition=Q(id=1))]

    def __str__(self) -> str:
        return str(self.position)


class AuditEvent(models.Model):
    """One thing that happened: who, what, about whom, when, from where. Written by ``nodes.audit.record`` alone."""

    position = models.BigIntegerField(primary_key=True)  # 1, 2, 3, ... without a hole
    type = models.CharField(max_length=64, choices=EventType.choices)
    at = models.DateTimeField()  # when it happened, which may be before it was noticed
    recorded_at = models.DateTimeField()  # when it was written down
    actor_kind = models.CharField(max_length=16)
    actor_role = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=255)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    about_kind = models.CharField(max_length=32)
    about_id = models.CharField(max_length=64)
    about_label = models.CharField(max_length=255)
    node_id = models.UUIDField(null=True)  # no foreign key: the history outlives its subjects
    details = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["-position"]
        indexes = [
            models.Index(fields=["node_id", "-position"], name="history_of_a_node"),
            models.Index(fields=["type", "-position"], name="history_by_type"),
            models.Index(fields=["at"], name="history_by_time"),
        ]
        constraints = [models.UniqueConstraint(fields=["hash"], name="a_hash_stands_once_in_the_history")]

    def __str__(self) -> str:
        return f"{self.position} {self.type}"


class IdempotentAnswer(models.Model):
    """What a creating POST answered to an ``Idempotency-Key``, kept for a day."""

    caller = models.CharField(max_length=128)  # kind:id of who asked
    path = models.CharField(max_length=255)
    key = models.CharField(max_length=128)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    answer = models.JSONField(null=True)  # None: it held a secret and is never replayed
    created = models.CharField(max_length=64, blank=True)  # id of what was made, told instead of a secret
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="answers_by_age")]
        constraints = [models.UniqueConstraint(fields=["caller", "path", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"{self.path} {self.key}"
