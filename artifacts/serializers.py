"""What the REST interface shows of storage roots and jobs."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from artifacts import half_done, leases, remedies, room
from artifacts.models import Job, StorageRoot
from artifacts.serializers_parts import (
    CapacityShown,
    CoursePoint,
    HalfDoneShown,
    JobFailureShown,
    PreflightShown,
    ProgressShown,
    RootFaultShown,
    RootProofShown,
    VerifiedShown,
)


class StorageRootShown(serializers.ModelSerializer[StorageRoot]):
    """A storage root; ``version`` is its ETag."""

    node_id = serializers.UUIDField(read_only=True)
    node = serializers.CharField(source="node.display_name", read_only=True)
    fault = serializers.SerializerMethodField()
    approval_waits = serializers.BooleanField(
        source="approve", read_only=True, help_text="The agent shall take the folder as it finds it next."
    )
    proof = serializers.SerializerMethodField()
    capacity = serializers.SerializerMethodField()
    artifacts = serializers.IntegerField(source="artifacts_kept", read_only=True)
    active_jobs = serializers.IntegerField(read_only=True)

    class Meta:
        model = StorageRoot
        fields = [
            "id",
            "node_id",
            "node",
            "host_path",
            "container_path",
            "purpose",
            "state",
            "fault",
            "approval_waits",
            "reserve_bytes",
            "reserve_percent",
            "ceiling_bytes",
            "proof",
            "capacity",
            "artifacts",
            "active_jobs",
            "created_at",
            "created_by",
            "retired_at",
            "version",
        ]
        read_only_fields = fields

    @extend_schema_field(RootFaultShown(allow_null=True))
    def get_fault(self, root: StorageRoot) -> Any:
        """What is wrong with it; null where nothing is."""
        if not root.fault:
            return None
        return {"code": root.fault, "detail": root.fault_detail, "remedy": remedies.root_fault(root.fault)[1]}

    @extend_schema_field(RootProofShown())
    def get_proof(self, root: StorageRoot) -> Any:
        """What its agent found, and when."""
        return RootProofShown(root).data

    @extend_schema_field(CapacityShown())
    def get_capacity(self, root: StorageRoot) -> Any:
        """How full it is."""
        found = room.of_listed(root)
        return CapacityShown(
            {
                "total_bytes": found.total_bytes,
                "free_bytes": found.free_bytes,
                "inodes_free": root.inodes_free,
                "reserve_bytes": found.reserve_bytes,
                "reserved_bytes": found.reserved_bytes,
                "artifact_bytes": found.artifact_bytes,
                "partial_bytes": found.partial_bytes,
                "room_bytes": found.room_bytes,
                "at": room.measured_at(root),
            }
        ).data


class JobShown(serializers.ModelSerializer[Job]):
    """A job in a list."""

    node_id = serializers.UUIDField(read_only=True)
    node = serializers.CharField(source="node.display_name", read_only=True)
    root_id = serializers.UUIDField(read_only=True)
    root = serializers.CharField(source="root.container_path", read_only=True)  # type: ignore[assignment]
    artifact_id = serializers.UUIDField(read_only=True, allow_null=True)
    allow_patterns = serializers.ListField(child=serializers.CharField(), read_only=True)
    ignore_patterns = serializers.ListField(child=serializers.CharField(), read_only=True)
    allow_formats = serializers.ListField(child=serializers.CharField(), read_only=True)
    progress = serializers.SerializerMethodField()
    failure = serializers.SerializerMethodField()
    preflight = PreflightShown(read_only=True, allow_null=True)
    verified = VerifiedShown(read_only=True, allow_null=True)
    half_done = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            "id",
            "type",
            "state",
            "node_id",
            "node",
            "root_id",
            "root",
            "artifact_id",
            "repo_id",
            "revision",
            "commit",
            "allow_patterns",
            "ignore_patterns",
            "allow_formats",
            "preflight_only",
            "reason",
            "progress",
            "failure",
            "preflight",
            "verified",
            "half_done",
            "attempt",
            "spent",
            "max_attempts",
            "not_before",
            "lease_expires_at",
            "cancel_requested_at",
            "cancelled_by",
            "dismissed_at",
            "dismissed_by",
            "created_at",
            "created_by",
            "started_at",
            "finished_at",
        ]
        read_only_fields = fields

    @extend_schema_field(ProgressShown(allow_null=True))
    def get_progress(self, job: Job) -> Any:
        """How far it was when its agent spoke last; null where it never did."""
        if job.progress_at is None:
            return None
        runs = job.state == Job.State.RUNNING
        shown: dict[str, Any] = {str(name): getattr(job, str(name), job.progress_at) for name in ProgressShown().fields}
        if not runs:
            shown |= {"bytes_per_second": None, "eta_seconds": None}
        return ProgressShown(shown).data

    @extend_schema_field(JobFailureShown(allow_null=True))
    def get_failure(self, job: Job) -> Any:
        """Why its last failed attempt failed; null where none did."""
        if not job.failure_code:
            return None
        return {
            "code": job.failure_code,
            "lasting": job.failure_code in leases.LASTING,
            "detail": job.failure_detail,
            "numbers": job.failure_numbers,
            "remedy": remedies.failure(job.failure_code, again=job.state in Job.ACTIVE)[1],
        }

    @extend_schema_field(HalfDoneShown(allow_null=True))
    def get_half_done(self, job: Job) -> Any:
        """What it left on its node; null where nothing is known to lie there, or its files are in use."""
        left = half_done.of(job)
        if left is None:
            return None
        return HalfDoneShown(
            {
                "bytes": left.bytes,
                "kept_until": half_done.kept_until(job, left),
                "forget_requested_at": left.asked_at,
                "forget_requested_by": left.asked_by,
                "gone_at": left.gone_at,
            }
        ).data


class JobWhole(JobShown):
    """A job with its course."""

    course = serializers.ListField(
        child=CoursePoint(min_length=3, max_length=3),
        read_only=True,
        help_text="[epoch seconds, bytes done, bytes per second], at most 120 of them.",
    )

    class Meta(JobShown.Meta):
        fields = [*JobShown.Meta.fields, "course"]
        read_only_fields = fields


class JobOrdered(JobWhole):
    """What an order led to."""

    joined = serializers.SerializerMethodField()

    class Meta(JobWhole.Meta):
        fields = [*JobWhole.Meta.fields, "joined"]
        read_only_fields = fields

    def get_joined(self, job: Job) -> bool:
        """True where the same was ordered before and has not ended: this is that job."""
        return bool(self.context["joined"])
