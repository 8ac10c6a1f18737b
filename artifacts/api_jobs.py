"""Jobs by REST: ordered, listed, cancelled, tried again, dismissed, forgotten."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from agent import wire
from artifacts import half_done, jobs, listed, orders
from artifacts.api_storage import missing
from artifacts.models import Artifact, Job, StorageRoot
from artifacts.serializers import JobOrdered, JobShown, JobWhole
from artifacts.serializers_orders import TYPES, JobOrder, MayReason
from nodes import idempotency
from nodes.callers import Caller, IsOperator, IsReader, caller_of
from nodes.idempotency import Made
from nodes.query import Flag, OneOf, Paged, Pages, read_body, read_query

ORDERINGS = {
    "created_at": "created_at",
    "started_at": "started_at",
    "finished_at": "finished_at",
    "node": "node__display_name",
    "repo_id": "repo_id",
    "state": "state",
}


class JobQuery(Paged):
    """The filters of the job list; each narrows it."""

    node = serializers.UUIDField(required=False)
    root = serializers.UUIDField(required=False)  # type: ignore[assignment]
    artifact = serializers.UUIDField(required=False)
    state = serializers.ListField(
        child=OneOf(choices=Job.State.values),
        required=False,
        max_length=len(Job.State.values),
        help_text="May be given several times.",
    )
    type = OneOf(choices=TYPES, required=False)
    repo_id = serializers.CharField(max_length=200, required=False, help_text="Exactly this repository.")
    preflight_only = Flag(required=False)
    q = serializers.CharField(
        max_length=255, required=False, help_text="Part of a repository, revision, commit, node or failure, or the id."
    )
    ordering = OneOf(choices=[*ORDERINGS, *(f"-{name}" for name in ORDERINGS)], default="-created_at")


class JobList(generics.GenericAPIView[Job]):
    """Jobs: the list, and a new order."""

    serializer_class = JobShown
    pagination_class = Pages
    filter_backends = ()
    queryset = Job.objects.none()

    def get_permissions(self) -> list[BasePermission]:
        """Readers read, operators order."""
        return [IsReader() if self.request.method in SAFE_METHODS else IsOperator()]

    @extend_schema(
        operation_id="jobs_list",
        tags=["admin"],
        summary="List jobs",
        parameters=[JobQuery],
        responses=JobShown(many=True),
    )
    def get(self, request: Request) -> Response:
        """One page, newest first unless told."""
        page = self.paginate_queryset(narrowed(listed.jobs(), read_query(request, JobQuery)))
        return self.get_paginated_response(JobShown(page, many=True).data)

    @extend_schema(
        operation_id="jobs_create",
        tags=["admin"],
        summary="Order a job",
        request=JobOrder,
        responses={201: JobOrdered, 200: JobOrdered},
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request) -> Response:
        """Order a job: 201 for a new one, 200 where it joins one that was ordered before and has not ended."""
        by, now = caller_of(request), datetime.now(UTC)
        return idempotency.once(request, lambda: ordered(read_body(request, JobOrder), by=by, now=now), by=by, now=now)


def narrowed(found: QuerySet[Job], wanted: dict[str, Any]) -> QuerySet[Job]:
    """The jobs that match every filter, in order."""
    for name in ("node", "root", "artifact"):
        if name in wanted:
            found = found.filter(**{f"{name}_id": wanted[name]})
    for name in ("type", "repo_id", "preflight_only"):
        if name in wanted:
            found = found.filter(**{name: wanted[name]})
    if wanted.get("state"):
        found = found.filter(state__in=wanted["state"])
    if "q" in wanted:
        found = found.filter(listed.jobs_matching(wanted["q"]))
    field = F(ORDERINGS[wanted["ordering"].lstrip("-")])
    down = wanted["ordering"].startswith("-")
    return found.order_by(field.desc(nulls_last=True) if down else field.asc(nulls_last=True), "id")


def ordered(body: dict[str, Any], *, by: Caller, now: datetime) -> Made:
    """The job that an order leads to."""
    kind, reason = body.pop("type"), body.pop("reason")
    if kind == wire.ACQUIRE:
        root = StorageRoot.objects.filter(pk=body.pop("root_id")).first()
        if root is None:
            raise missing("root_id", "There is no such storage root.")
        job, new = orders.acquire(root, **{"revision": "main"} | body, reason=reason, by=by, now=now)
    else:
        artifact = Artifact.objects.filter(pk=body["artifact_id"]).first()
        if artifact is None:
            raise missing("artifact_id", "There is no such artifact.")
        act = orders.verify if kind == wire.VERIFY else orders.remove
        job, new = act(artifact, reason=reason, by=by, now=now)
    return made(job, new)


def made(job: Job, new: bool) -> Made:
    """An order's answer."""
    answer = JobOrdered(whole(job.pk), context={"joined": not new}).data
    return Made(answer, created=str(job.pk), status=201 if new else 200)


def whole(id: UUID) -> Job:
    """The job with all that is shown of it."""
    found = Job.objects.select_related("node", "root", "half_done").defer("node__facts", "node__labels")
    return get_object_or_404(found, pk=id)


class JobDetail(generics.GenericAPIView[Job]):
    """One job."""

    permission_classes = [IsReader]
    serializer_class = JobWhole
    queryset = Job.objects.none()

    @extend_schema(operation_id="jobs_retrieve", tags=["admin"], summary="Read a job")
    def get(self, request: Request, id: UUID) -> Response:
        """The job with its course."""
        return Response(JobWhole(whole(id)).data)


class JobVerb(generics.GenericAPIView[Job]):
    """What operators do to a job."""

    permission_classes = [IsOperator]
    serializer_class = JobWhole
    queryset = Job.objects.none()

    def do(self, request: Request, id: UUID, act: Callable[..., Any]) -> Response:
        """Read, act, answer."""
        by, now, job = caller_of(request), datetime.now(UTC), whole(id)
        act(job, **read_body(request, MayReason), by=by, now=now)
        return Response(JobWhole(whole(id)).data)


class JobCancel(JobVerb):
    """Cancel a job: a queued one ends at once, a running one is told to stop at its agent's next word."""

    @extend_schema(
        operation_id="jobs_cancel", tags=["admin"], summary="Cancel a job", request=MayReason, responses=JobWhole
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Cancel it."""
        return self.do(request, id, jobs.cancel)


class JobRetry(JobVerb):
    """Queue a failed or cancelled job again, with fresh attempts; it goes on from what is kept of what was fetched."""

    @extend_schema(
        operation_id="jobs_retry", tags=["admin"], summary="Retry a job", request=MayReason, responses=JobWhole
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Retry it."""
        return self.do(request, id, jobs.retry)


class JobDismiss(JobVerb):
    """Dismiss a failed job: it needs attention no more, and stays in the list."""

    @extend_schema(
        operation_id="jobs_dismiss",
        tags=["admin"],
        summary="Dismiss a failed job",
        request=MayReason,
        responses=JobWhole,
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Dismiss it."""
        return self.do(request, id, jobs.dismiss)


class JobForget(JobVerb):
    """Give back the room that a failed or cancelled job's half-done files take."""

    @extend_schema(
        operation_id="jobs_forget",
        tags=["admin"],
        summary="Delete a job's half-done files",
        request=MayReason,
        responses=JobWhole,
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Ask that what a failed or cancelled job left half done is deleted now, and not kept for another try.

        Its agent deletes the files with its next claim; `half_done.gone_at` tells once its word shows them gone. A
        retry then begins anew. Refused while the job waits or runs, after it succeeded, and while another order of the
        same may go on with these files. Asked twice, nothing more happens.
        """
        return self.do(request, id, half_done.forget)
