"""What may be asked of storage roots, jobs and artifacts by REST: the bodies, checked field by field."""

from typing import Any, get_args

from rest_framework import serializers

from agent import wire
from artifacts import reserves
from nodes.control import MAX_REASON
from nodes.query import OneOf, Strict

TYPES = get_args(wire.JobType)


class ReasonGiven(Strict):
    """Why; told in the history."""

    reason = serializers.CharField(max_length=MAX_REASON)


class MayReason(Strict):
    """Why, where there is something to say; told in the history."""

    reason = serializers.CharField(max_length=MAX_REASON, default="", allow_blank=True)


class StorageRootRegistration(Strict):
    """A folder of a node that models are brought to."""

    node_id = serializers.UUIDField()
    host_path = serializers.CharField(max_length=4096, help_text="As the server knows it, for people.")
    container_path = serializers.CharField(max_length=4096, help_text="As the agent knows it.")
    purpose = serializers.CharField(max_length=64, default="artifacts")
    reserve_bytes = serializers.IntegerField(
        min_value=0,
        max_value=reserves.MOST_BYTES,
        required=False,
        allow_null=True,
        help_text="To be left free; or a percentage.",
    )
    reserve_percent = serializers.FloatField(
        min_value=0,
        max_value=reserves.MOST_PERCENT,
        required=False,
        allow_null=True,
        help_text="Of the file system; 5 unless told.",
    )
    ceiling_bytes = serializers.IntegerField(
        min_value=1,
        max_value=reserves.MOST_BYTES,
        required=False,
        allow_null=True,
        help_text="What ModelForge may fill at most.",
    )


class StorageRootRevision(serializers.Serializer[Any]):
    """What an operator may change; what is left out stays."""

    host_path = serializers.CharField(max_length=4096, required=False)
    purpose = serializers.CharField(max_length=64, required=False)
    reserve_bytes = serializers.IntegerField(
        required=False, allow_null=True, help_text="Takes the place of a percentage."
    )
    reserve_percent = serializers.FloatField(
        required=False, allow_null=True, help_text="Takes the place of an amount in bytes."
    )
    ceiling_bytes = serializers.IntegerField(required=False, allow_null=True, help_text="null: no ceiling.")


class Words(serializers.ListField):
    """A list of texts."""

    child = serializers.CharField(max_length=512)


class JobOrder(Strict):
    """What shall be done. To acquire: ``root_id`` and ``repo_id``. To verify or remove: ``artifact_id``."""

    type = OneOf(choices=TYPES, default=wire.ACQUIRE)
    root_id = serializers.UUIDField(required=False)
    repo_id = serializers.CharField(max_length=200, required=False, help_text="For example org/model.")
    revision = serializers.CharField(
        max_length=250, required=False, help_text="Branch, tag or commit; main unless told."
    )
    allow_patterns = Words(required=False, max_length=64, help_text="Only files that match one; none: all.")
    ignore_patterns = Words(required=False, max_length=64)
    allow_formats = serializers.ListField(
        child=OneOf(choices=get_args(wire.Format)),
        required=False,
        max_length=8,
        help_text="Formats that may execute something when they are loaded; needs a reason.",
    )
    preflight_only = serializers.BooleanField(required=False, help_text="Only tell what it would bring.")
    artifact_id = serializers.UUIDField(required=False)
    reason = serializers.CharField(max_length=MAX_REASON, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Each type has fields of its own."""
        if attrs["type"] == wire.ACQUIRE:
            needed, foreign = ["root_id", "repo_id"], ["artifact_id"]
        else:
            needed, foreign = ["artifact_id"], [name for name in _OF_ACQUIRE if name in attrs]
        faults = {name: [f"An order of {attrs['type']} needs it."] for name in needed if name not in attrs}
        faults |= {name: [f"Not for {attrs['type']}."] for name in foreign if name in attrs}
        if faults:
            raise serializers.ValidationError(faults)
        return attrs


_OF_ACQUIRE = (
    "root_id",
    "repo_id",
    "revision",
    "allow_patterns",
    "ignore_patterns",
    "allow_formats",
    "preflight_only",
)
