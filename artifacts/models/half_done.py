"""Half-done files: what jobs that failed or were cancelled left in their roots."""

from django.db import models
from django.db.models import Q

from artifacts.models.jobs import Job
from artifacts.models.roots import StorageRoot


class HalfDone(models.Model):
    """What one such job left there, as its node's agent told last; the row goes when the agent's word lacks it.

    ::

        (none) --the agent tells of them--> lying --its word lacks them--> (none)
        lying --an operator asks--> asked --its word lacks them--> gone
        asked --the job is tried again--> lying          gone --the job is tried again--> (none)
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="half_done")
    root = models.ForeignKey(StorageRoot, on_delete=models.CASCADE, related_name="half_done")
    bytes = models.BigIntegerField(null=True)  # what room their deletion gives back; None: not measured
    asked_at = models.DateTimeField(null=True)  # an operator wants that room now
    asked_by = models.CharField(max_length=255, blank=True)
    gone_at = models.DateTimeField(null=True)  # the agent's word lacked them after that

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="only_what_was_asked_for_is_told_as_gone",
                condition=Q(gone_at__isnull=True) | Q(asked_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"half-done files of {self.job_id}"
