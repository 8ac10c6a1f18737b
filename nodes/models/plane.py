"""The control plane's own row, and what it answered to those who may ask twice."""

from django.db import models
from django.db.models import Q


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
