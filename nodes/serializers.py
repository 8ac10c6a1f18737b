"""What the REST interface shows of a node; never a secret, for none is stored."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from nodes import telemetry
from nodes.liveness import Liveness
from nodes.models import CredentialState, Node
from nodes.query import OneOf
from nodes.serializers_parts import (
    AcceleratorShown,
    FactsField,
    GpuRuntimeField,
    HeartbeatShown,
    LabelsField,
    SampleShown,
    VolumeShown,
    WarningShown,
    age_seconds,
)
from nodes.warnings import warnings_of


class AcceleratorSummary(serializers.Serializer[Any]):
    """A node's accelerators in short."""

    present = serializers.IntegerField(help_text="GPUs that the driver shows; MIG instances are not counted.")
    missing = serializers.IntegerField(help_text="GPUs and MIG instances that it no longer shows.")
    memory_bytes = serializers.IntegerField(
        allow_null=True, help_text="Sum over the present GPUs whose memory is known; null where none is."
    )
    models = serializers.DictField(child=serializers.IntegerField(), help_text="How many of each model are present.")


class NodeSummary(serializers.ModelSerializer[Node]):
    """A node in a list. Liveness is that of the moment of the answer."""

    labels = LabelsField(read_only=True)
    liveness = OneOf(source="liveness_now", choices=[state.value for state in Liveness])
    retired = serializers.SerializerMethodField()
    credential_state = OneOf(choices=CredentialState.values)
    rotation_pending = serializers.SerializerMethodField()
    identity_conflict = serializers.SerializerMethodField()
    protocol_refused = serializers.SerializerMethodField()
    last_heard_at = serializers.DateTimeField(source="heartbeat.last_heard_at", allow_null=True, default=None)
    heartbeat_age_seconds = serializers.SerializerMethodField()
    heartbeat_interval_seconds = serializers.FloatField(source="heartbeat.interval_seconds", default=0.0)
    stopped_at = serializers.DateTimeField(
        source="heartbeat.stopped_at", allow_null=True, default=None, help_text="When its agent stopped as planned."
    )
    gpu_runtime_state = serializers.CharField(source="gpu_state", allow_null=True)
    tls_verify = serializers.SerializerMethodField()
    accelerator_summary = serializers.SerializerMethodField()

    class Meta:
        model = Node
        fields = [
            "id",
            "display_name",
            "hostname",
            "role",
            "labels",
            "production_eligible",
            "lab_eligible",
            "benchmark_eligible",
            "liveness",
            "enabled",
            "retired",
            "credential_state",
            "rotation_pending",
            "identity_conflict",
            "protocol_refused",
            "last_heard_at",
            "heartbeat_age_seconds",
            "heartbeat_interval_seconds",
            "stopped_at",
            "agent_version",
            "protocol_version",
            "gpu_runtime_state",
            "tls_verify",
            "accelerator_summary",
            "enrolled_at",
            "version",
        ]
        read_only_fields = fields

    def get_retired(self, node: Node) -> bool:
        """Whether it was taken out for good."""
        return node.retired_at is not None

    def get_rotation_pending(self, node: Node) -> bool:
        """Whether a new credential is out and unused."""
        return node.credential_state == CredentialState.ROTATING

    def get_identity_conflict(self, node: Node) -> bool:
        """Whether a copy of its identity spoke."""
        return node.identity_conflict_at is not None

    def get_protocol_refused(self, node: Node) -> bool:
        """Whether its last contact was in a protocol that is not spoken."""
        return node.protocol_refused_at is not None

    def get_heartbeat_age_seconds(self, node: Node) -> float | None:
        """How long ago it was heard; null where it never was."""
        return age_seconds(getattr(node, "heartbeat", None), self.context["now"])

    def get_tls_verify(self, node: Node) -> bool | None:
        """Whether its agent verifies certificates; null before the first facts."""
        said = getattr(node, "tls_state", None)
        return None if said is None else str(said).lower() in {"true", "1"}

    @extend_schema_field(AcceleratorSummary)
    def get_accelerator_summary(self, node: Node) -> dict[str, Any]:
        """Its accelerators in short."""
        devices = list(node.accelerators.all())
        present = [device for device in devices if device.missing_since is None and device.kind == "gpu"]
        known = [device.memory_bytes for device in present if device.memory_bytes is not None]
        models: dict[str, int] = {}
        for device in present:
            models[device.model or "unknown"] = models.get(device.model or "unknown", 0) + 1
        return {
            "present": len(present),
            "missing": sum(device.missing_since is not None for device in devices),
            "memory_bytes": sum(known) if known else None,
            "models": models,
        }


class NodeWhole(NodeSummary):
    """A node with all that is known of it."""

    heartbeat = serializers.SerializerMethodField()
    identity_conflict_details = serializers.JSONField(source="identity_conflict", read_only=True)
    protocol_refused_said = serializers.CharField(source="protocol_refused", read_only=True)
    facts = FactsField(read_only=True, allow_null=True)
    gpu_runtime = serializers.SerializerMethodField()
    accelerators = AcceleratorShown(many=True, read_only=True)
    volumes = VolumeShown(many=True, read_only=True)
    telemetry = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()

    class Meta(NodeSummary.Meta):
        fields = [
            *NodeSummary.Meta.fields,
            "enabled_reason",
            "retired_at",
            "rotation_ends_at",
            "identity_conflict_at",
            "identity_conflict_details",
            "protocol_refused_at",
            "protocol_refused_said",
            "refused_at",
            "refused_code",
            "address",
            "updated_at",
            "heartbeat",
            "facts_at",
            "facts_digest",
            "want_facts",
            "facts",
            "gpu_runtime",
            "accelerators",
            "volumes",
            "telemetry",
            "warnings",
        ]
        read_only_fields = fields

    @extend_schema_field(HeartbeatShown(allow_null=True))
    def get_heartbeat(self, node: Node) -> Any:
        """How it is heard."""
        heart = getattr(node, "heartbeat", None)
        return HeartbeatShown(heart, context=self.context).data if heart else None

    @extend_schema_field(GpuRuntimeField())
    def get_gpu_runtime(self, node: Node) -> Any:
        """NVML as the agent found it last."""
        return node.facts["gpu_runtime"] if node.facts else None

    @extend_schema_field(SampleShown(allow_null=True))
    def get_telemetry(self, node: Node) -> Any:
        """The newest sample."""
        sample = telemetry.latest(node)
        return SampleShown(sample).data if sample else None

    @extend_schema_field(WarningShown(many=True))
    def get_warnings(self, node: Node) -> Any:
        """What an operator should look at."""
        found = warnings_of(node, getattr(node, "heartbeat", None), list(node.accelerators.all()))
        return WarningShown(list(found), many=True).data
