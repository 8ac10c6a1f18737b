"""The shapes of the enrollment endpoints: what may be asked, and what is told of tokens and credentials."""

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from enrollment import credentials
from enrollment.invitations import (
    DEFAULT_LIFETIME,
    LONGEST_LIFETIME,
    SHORTEST_LIFETIME,
    TokenState,
    state_of,
)
from enrollment.models import EnrollmentToken
from nodes.control import MAX_REASON
from nodes.query import OneOf, Paged, Strict
from nodes.serializers_parts import LabelsField


class TokenQuery(Paged):
    """Which tokens to list."""

    state = OneOf(choices=[state.value for state in TokenState], required=False)


class NodeInvitation(Strict):
    """Who is invited, and for how long the token is good."""

    expires_in_seconds = serializers.IntegerField(
        default=int(DEFAULT_LIFETIME.total_seconds()),
        min_value=int(SHORTEST_LIFETIME.total_seconds()),
        max_value=int(LONGEST_LIFETIME.total_seconds()),
    )
    display_name = serializers.CharField(
        default="", allow_blank=True, max_length=255, help_text="Empty: the agent's own, else its host name."
    )
    role = serializers.CharField(default="", allow_blank=True, max_length=64)
    labels = LabelsField(default=dict)
    production_eligible = serializers.BooleanField(default=False)
    lab_eligible = serializers.BooleanField(default=False)
    benchmark_eligible = serializers.BooleanField(default=False)


class OptionalReason(Strict):
    """Why; told in the history."""

    reason = serializers.CharField(default="", allow_blank=True, max_length=MAX_REASON)


class CredentialRotation(OptionalReason):
    """For how long the old credential still works; 0 means that it dies now."""

    overlap_seconds = serializers.IntegerField(
        default=int(credentials.DEFAULT_OVERLAP.total_seconds()),
        min_value=0,
        max_value=int(credentials.LONGEST_OVERLAP.total_seconds()),
    )


class EnrollmentTokenShown(serializers.ModelSerializer[EnrollmentToken]):
    """An enrollment token as it stands, without its secret."""

    state = serializers.SerializerMethodField()
    labels = LabelsField(read_only=True)
    node_id = serializers.UUIDField(read_only=True, allow_null=True, help_text="The node that used it.")

    class Meta:
        model = EnrollmentToken
        fields = [
            "id",
            "state",
            "last_four",
            "display_name",
            "role",
            "labels",
            "production_eligible",
            "lab_eligible",
            "benchmark_eligible",
            "created_at",
            "created_by",
            "expires_at",
            "used_at",
            "revoked_at",
            "node_id",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=[state.value for state in TokenState]))
    def get_state(self, token: EnrollmentToken) -> str:
        """Open, used, expired or revoked, at the instant of asking."""
        return state_of(token, self.context.get("now") or datetime.now(UTC)).value


class EnrollmentTokenMade(EnrollmentTokenShown):
    """A new enrollment token with its secret, which is told this once."""

    token = serializers.CharField(read_only=True, help_text="mfe_...; told this once.")

    class Meta(EnrollmentTokenShown.Meta):
        fields = [*EnrollmentTokenShown.Meta.fields, "token"]
        read_only_fields = fields


class CredentialRotated(serializers.Serializer[Any]):
    """A new credential with its secret, which is told this once."""

    node_id = serializers.UUIDField()
    credential = serializers.CharField(help_text="mfn_...; told this once. Install it with `credential set`.")
    credential_id = serializers.UUIDField()
    last_four = serializers.CharField()
    issued_at = serializers.DateTimeField()
    old_dies_at = serializers.DateTimeField(
        allow_null=True, help_text="When the old credential dies at the latest; null where none works any more."
    )


class CredentialsRevoked(serializers.Serializer[Any]):
    """What a revocation did."""

    node_id = serializers.UUIDField()
    revoked = serializers.IntegerField(help_text="How many credentials; 0 when none was left.")
