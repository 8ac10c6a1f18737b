"""The tables of trust: enrollment tokens, node credentials, API keys. None of them holds a secret, only its digest."""

import uuid

from django.db import models
from django.db.models import Q

from nodes.models import Node


class Secret(models.Model):
    """What every secret leaves behind: a handle to find it, a digest to prove it, four characters to recognise it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    handle = models.CharField(max_length=32, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)  # SHA-256 of the whole secret, hex
    last_four = models.CharField(max_length=4, editable=False)

    class Meta:
        abstract = True


class EnrollmentToken(Secret):
    """An invitation for one node: used once, before it expires, unless an operator takes it back."""

    display_name = models.CharField(max_length=255, blank=True)
    role = models.CharField(max_length=64, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    production_eligible = models.BooleanField(default=False)
    lab_eligible = models.BooleanField(default=False)
    benchmark_eligible = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    node = models.ForeignKey(Node, null=True, blank=True, on_delete=models.SET_NULL, related_name="enrollment_tokens")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="a_used_token_was_not_revoked", condition=Q(used_at__isnull=True) | Q(revoked_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.display_name or 'any node'} (…{self.last_four})"


class NodeCredential(Secret):
    """What a node proves itself with.

    ::

        pending --first use--> active --first use of the next, or overlap over--> superseded
           |                      |
           '------ the next is issued first: superseded; revoke: revoked ------'
    """

    class State(models.TextChoices):
        """Where it stands."""

        PENDING = "pending"
        ACTIVE = "active"
        SUPERSEDED = "superseded"
        REVOKED = "revoked"

    class Origin(models.TextChoices):
        """How it came to be."""

        ENROLLMENT = "enrollment"
        ROTATION = "rotation"
        RENEWAL = "renewal"

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="credentials")
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    origin = models.CharField(max_length=16, choices=Origin.choices)
    token = models.ForeignKey(
        EnrollmentToken, null=True, blank=True, on_delete=models.SET_NULL, related_name="credentials"
    )
    issued_at = models.DateTimeField()
    issued_by = models.CharField(max_length=255)
    first_used_at = models.DateTimeField(null=True, blank=True)
    dies_at = models.DateTimeField(null=True, blank=True)  # an active one that is being rotated out
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=255, blank=True)
    refusal_told_at = models.DateTimeField(null=True, blank=True)  # its use after its end is told once

    class Meta:
        ordering = ["-issued_at"]
        constraints = [
            models.UniqueConstraint(fields=["node"], condition=Q(state="active"), name="one_live_credential_per_node"),
            models.UniqueConstraint(
                fields=["node"], condition=Q(state="pending"), name="one_unused_credential_per_node"
            ),
        ]

    def __str__(self) -> str:
        return f"…{self.last_four} ({self.state})"


class ApiKey(Secret):
    """A named key for a script, with a role and an end."""

    class Role(models.TextChoices):
        """What it may do."""

        OPERATOR = "operator"
        AUDITOR = "auditor"

    name = models.CharField(max_length=255)
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(revoked_at__isnull=True), name="a_live_key_has_its_own_name"
            )
        ]

    def __str__(self) -> str:
        return self.name
