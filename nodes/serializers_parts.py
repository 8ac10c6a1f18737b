"""What the REST interface shows of a node's parts: how it is heard, its devices, its volumes, its samples."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from nodes.models import Accelerator, Heartbeat, Volume


def wire_type(name: str, *, nullable: bool = False) -> dict[str, Any]:
    """The schema of a wire message, which ``modelforge.schema`` puts among the components."""
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {"anyOf": [reference, {"type": "null"}]} if nullable else reference


def age_seconds(heart: Heartbeat | None, now: datetime) -> float | None:
    """How long ago a node was heard, or None where it never was."""
    if heart is None or heart.last_heard_at is None:
        return None
    return round(max(0.0, (now - heart.last_heard_at).total_seconds()), 3)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class LabelsField(serializers.JSONField):
    """Texts by name."""


@extend_schema_field(wire_type("Facts", nullable=True))
class FactsField(serializers.JSONField):
    """The newest facts as the agent published them."""


@extend_schema_field(wire_type("GpuRuntime", nullable=True))
class GpuRuntimeField(serializers.JSONField):
    """NVML as the agent found it last."""


@extend_schema_field(wire_type("Telemetry"))
class TelemetryField(serializers.JSONField):
    """One sample."""


@extend_schema_field(wire_type("AcceleratorFacts"))
class AcceleratorFactsField(serializers.JSONField):
    """Each measured value, or the reason why there is none."""


@extend_schema_field(wire_type("VolumeFacts"))
class VolumeFactsField(serializers.JSONField):
    """Each measured value, or the reason why there is none."""


class HeartbeatShown(serializers.ModelSerializer[Heartbeat]):
    """How a node is heard: its last beat and the instants at which silence makes it stale and offline."""

    age_seconds = serializers.SerializerMethodField()

    class Meta:
        model = Heartbeat
        fields = [
            "last_heard_at",
            "age_seconds",
            "interval_seconds",
            "stale_at",
            "offline_at",
            "online_since",
            "clock_skew_seconds",
            "boot_id",
            "sequence",
            "stopped_at",
            "stop_reason",
        ]
        read_only_fields = fields

    def get_age_seconds(self, heart: Heartbeat) -> float | None:
        """How long ago it was heard; null where it never was."""
        return age_seconds(heart, self.context["now"])


class AcceleratorShown(serializers.ModelSerializer[Accelerator]):
    """A GPU or MIG instance; ``facts`` gives each value, or the reason why there is none."""

    facts = AcceleratorFactsField(read_only=True)

    class Meta:
        model = Accelerator
        fields = [
            "key",
            "identity",
            "kind",
            "parent",
            "index",
            "uuid",
            "model",
            "pci_bus_id",
            "memory_bytes",
            "memory_model",
            "driver_version",
            "facts",
            "first_seen_at",
            "last_seen_at",
            "missing_since",
        ]
        read_only_fields = fields


class VolumeShown(serializers.ModelSerializer[Volume]):
    """One of the named data volumes."""

    facts = VolumeFactsField(read_only=True)

    class Meta:
        model = Volume
        fields = ["name", "path", "filesystem", "total_bytes", "free_bytes", "facts", "seen_at"]
        read_only_fields = fields


class SampleShown(serializers.Serializer[Any]):
    """The newest telemetry; null where there is none."""

    at = serializers.DateTimeField(help_text="By the control plane's clock.")
    data = TelemetryField()  # type: ignore[assignment]


class WarningShown(serializers.Serializer[Any]):
    """Something an operator should look at."""

    code = serializers.CharField()
    detail = serializers.CharField()


class PointsField(serializers.ListField):
    """A line: ``[epoch seconds, value or null]`` in order."""

    child = serializers.ListField(child=serializers.FloatField(allow_null=True), min_length=2, max_length=2)


class SeriesShown(serializers.Serializer[Any]):
    """Telemetry to draw; null where nothing was measured, which is never 0."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step_seconds = serializers.FloatField()
    host = serializers.DictField(child=PointsField(), help_text="By metric.")
    accelerators = serializers.DictField(
        child=serializers.DictField(child=PointsField()), help_text="By accelerator key, then by metric."
    )
    volumes = serializers.DictField(
        child=serializers.DictField(child=PointsField()), help_text="By volume name, then by metric."
    )
