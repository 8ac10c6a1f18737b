"""Artifacts by REST: what lies where, whole and verified; verified again, removed."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from artifacts import listed, orders, standing
from artifacts.api_jobs import made
from artifacts.models import Artifact
from artifacts.serializers import JobOrdered
from artifacts.serializers_artifacts import ArtifactShown
from artifacts.serializers_orders import MayReason, ReasonGiven
from nodes import idempotency
from nodes.callers import IsOperator, IsReader, caller_of
from nodes.idempotency import Made
from nodes.query import OneOf, Paged, Pages, Strict, read_body, read_query

LOOKUPS = {
    "node": "node_id",
    "root": "root_id",
    "repo_id": "repo_id",
    "commit": "commit__startswith",
}


class ArtifactQuery(Paged):
    """The filters of the artifact list; each narrows it."""

    node = serializers.UUIDField(required=False)
    root = serializers.UUIDField(required=False)  # type: ignore[assignment]
    repo_id = serializers.CharField(max_length=200, required=False, help_text="Exactly this repository.")
    commit = serializers.RegexField(
        r"^[0-9a-f]{4,40}$", required=False, help_text="The commit or its beginning, at least 4 digits."
    )
    state = OneOf(
        choices=standing.STATES, required=False, help_text="Removed and gone ones are left out unless asked for."
    )
    q = serializers.CharField(
        max_length=255, required=False, help_text="Part of a repository, revision, commit, node or folder, or the id."
    )


class ArtifactList(generics.GenericAPIView[Artifact]):
    """The artifacts, in pages."""

    permission_classes = [IsReader]
    serializer_class = ArtifactShown
    pagination_class = Pages
    filter_backends = ()
    queryset = Artifact.objects.none()

    @extend_schema(
        operation_id="artifacts_list",
        tags=["artifacts"],
        summary="List artifacts",
        parameters=[ArtifactQuery],
        responses=ArtifactShown(many=True),
    )
    def get(self, request: Request) -> Response:
        """One page, by repository, newest first."""
        found = narrowed(listed.artifacts(), read_query(request, ArtifactQuery))
        page = self.paginate_queryset(found.order_by("repo_id", "-published_at", "id"))
        return self.get_paginated_response(ArtifactShown(page, many=True).data)


def narrowed(found: QuerySet[Artifact], wanted: dict[str, Any]) -> QuerySet[Artifact]:
    """The artifacts that match every filter."""
    for name, lookup in LOOKUPS.items():
        if name in wanted:
            found = found.filter(**{lookup: wanted[name]})
    found = found.filter(standing.shows(wanted["state"]) if "state" in wanted else standing.HERE)
    return found.filter(listed.artifacts_matching(wanted["q"])) if "q" in wanted else found


class ArtifactDetail(generics.GenericAPIView[Artifact]):
    """One artifact."""

    permission_classes = [IsReader]
    serializer_class = ArtifactShown
    queryset = Artifact.objects.none()

    @extend_schema(operation_id="artifacts_retrieve", tags=["artifacts"], summary="Read an artifact")
    def get(self, request: Request, id: UUID) -> Response:
        """The artifact."""
        return Response(ArtifactShown(get_object_or_404(listed.artifacts(), pk=id)).data)


class ArtifactVerb(generics.GenericAPIView[Artifact]):
    """What operators order about an artifact: a job of its node."""

    permission_classes = [IsOperator]
    serializer_class: type[serializers.BaseSerializer[Any]] = JobOrdered
    queryset = Artifact.objects.none()

    def do(self, request: Request, id: UUID, act: Callable[..., Any], kind: type[Strict]) -> Response:
        """Read, order, answer."""
        by, now, artifact = caller_of(request), datetime.now(UTC), get_object_or_404(Artifact, pk=id)

        def order() -> Made:
            return made(*act(artifact, **read_body(request, kind), by=by, now=now))

        return idempotency.once(request, order, by=by, now=now)


class ArtifactVerify(ArtifactVerb):
    """Order that every byte of an artifact is read again and compared with its manifest."""

    @extend_schema(
        operation_id="artifacts_verify",
        tags=["admin"],
        summary="Verify an artifact",
        request=MayReason,
        responses={201: JobOrdered, 200: JobOrdered},
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Order it: 201, or 200 where it was ordered before and has not ended."""
        return self.do(request, id, orders.verify, MayReason)


class ArtifactRemove(ArtifactVerb):
    """Order that an artifact is unpublished, then deleted from its root."""

    @extend_schema(
        operation_id="artifacts_remove",
        tags=["admin"],
        summary="Remove an artifact",
        request=ReasonGiven,
        responses={201: JobOrdered, 200: JobOrdered},
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Order it: 201, or 200 where it was ordered before and has not ended."""
        return self.do(request, id, orders.remove, ReasonGiven)
