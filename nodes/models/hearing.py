"""What is heard of nodes: heartbeats, and the starts of their agents."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from nodes.liveness import Deadlines, Liveness, seen_at
from nodes.models.nodes import Node

LIVENESS = [(state.value, state.value) for state in Liveness]


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
