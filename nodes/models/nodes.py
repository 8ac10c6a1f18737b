"""Nodes: what operators and agents say of a server, apart from what changes with every beat."""

import uuid

from django.db import models
from django.db.models import Q


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
