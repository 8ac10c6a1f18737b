"""The history: its events, and the head of its chain."""

from django.db import models
from django.db.models import Q

from nodes.event_types import EventType


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
