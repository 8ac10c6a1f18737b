"""What the REST interface shows of the parts of storage roots and jobs: capacity, proof, progress, failure."""

from typing import Any

from rest_framework import serializers


class CapacityShown(serializers.Serializer[Any]):
    """How full a root is; what was never measured is null, which is never 0."""

    total_bytes = serializers.IntegerField(allow_null=True, help_text="Of the file system.")
    free_bytes = serializers.IntegerField(allow_null=True, help_text="What an unprivileged writer may still use.")
    inodes_free = serializers.IntegerField(allow_null=True)
    reserve_bytes = serializers.IntegerField(
        allow_null=True, help_text="To be left free; of a percentage, null until the size is known."
    )
    reserved_bytes = serializers.IntegerField(help_text="Still to be written to this disk by jobs that have not ended.")
    artifact_bytes = serializers.IntegerField(help_text="Of the artifacts that lie here.")
    partial_bytes = serializers.IntegerField(
        allow_null=True, help_text="Of half-done files here whose jobs do not run: kept for a while, for another try."
    )
    room_bytes = serializers.IntegerField(allow_null=True, help_text="What another job may still bring; at least 0.")
    at = serializers.DateTimeField(allow_null=True, help_text="When the agent measured the file system; null: never.")


class RootProofShown(serializers.Serializer[Any]):
    """What the agent found at a root, and when."""

    device_id = serializers.CharField(allow_blank=True, help_text="As approved.")
    fsid = serializers.CharField(allow_blank=True, help_text="As approved.")
    filesystem = serializers.CharField(allow_blank=True)
    mount_point = serializers.CharField(allow_blank=True)
    approved_at = serializers.DateTimeField(allow_null=True)
    proven_at = serializers.DateTimeField(allow_null=True, help_text="Last time that all was well.")
    looked_at = serializers.DateTimeField(allow_null=True, help_text="Last time that its agent looked.")


class RootFaultShown(serializers.Serializer[Any]):
    """What is wrong with a root."""

    code = serializers.CharField()
    detail = serializers.CharField(allow_blank=True)
    remedy = serializers.CharField()


class ProgressShown(serializers.Serializer[Any]):
    """How far a job was at ``at``, when its agent spoke last."""

    phase = serializers.CharField(allow_blank=True)
    bytes_total = serializers.IntegerField(help_text="0 until the plan is made.")
    bytes_done = serializers.IntegerField(help_text="Of the snapshot, wherever they came from.")
    bytes_fetched = serializers.IntegerField(help_text="Over the network, all attempts together.")
    bytes_reused = serializers.IntegerField(help_text="From other snapshots or the Hub cache.")
    files_total = serializers.IntegerField()
    files_done = serializers.IntegerField()
    bytes_per_second = serializers.FloatField(allow_null=True, help_text="Null unless the job runs.")
    eta_seconds = serializers.FloatField(allow_null=True, help_text="As the agent reckoned; null unless the job runs.")
    at = serializers.DateTimeField()


class HalfDoneShown(serializers.Serializer[Any]):
    """What a job that failed or was cancelled left on its node, as the node's agent told last."""

    bytes = serializers.IntegerField(allow_null=True, help_text="The room that it takes; null where nobody measured.")
    kept_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Deleted unasked then; a retry goes on with it before. Null once it was to be forgotten.",
    )
    forget_requested_at = serializers.DateTimeField(
        allow_null=True, help_text="An operator wants the room; the agent deletes it with its next claim."
    )
    forget_requested_by = serializers.CharField(allow_blank=True)
    gone_at = serializers.DateTimeField(
        allow_null=True, help_text="When the agent's word lacked it after that; null while it still lies there."
    )


class JobFailureShown(serializers.Serializer[Any]):
    """Why the last attempt failed."""

    code = serializers.CharField()
    lasting = serializers.BooleanField(help_text="Only a person can mend it; it is not tried again by itself.")
    detail = serializers.CharField(allow_blank=True)
    numbers = serializers.DictField(child=serializers.IntegerField(), help_text="Such as needed_bytes and free_bytes.")
    remedy = serializers.CharField()


class PreflightShown(serializers.Serializer[Any]):
    """What an order would bring, and whether there is room."""

    files = serializers.IntegerField()
    bytes = serializers.IntegerField()
    largest_file = serializers.CharField(allow_blank=True)
    largest_bytes = serializers.IntegerField()
    gated = serializers.BooleanField()
    fits = serializers.BooleanField()
    needed_bytes = serializers.IntegerField(help_text="Still to be written, reserve and other jobs included.")
    free_bytes = serializers.IntegerField()
    refused = serializers.CharField(allow_blank=True, help_text="Why the manifest would be refused; empty: it is not.")


class VerifiedShown(serializers.Serializer[Any]):
    """What reading a published snapshot again found."""

    files = serializers.IntegerField()
    bytes = serializers.IntegerField()
    damaged = serializers.ListField(child=serializers.CharField(), help_text="Changed or missing; at most 100.")
    missing = serializers.BooleanField(help_text="There is no such snapshot.")


class CoursePoint(serializers.ListField):
    """``[epoch seconds, bytes done, bytes per second]``."""

    child = serializers.FloatField()
