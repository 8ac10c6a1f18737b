"""Storage roots by REST: listed, registered, revised, approved again, retired."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from agent.protocol import Code
from agent.wire import FieldError
from artifacts import listed, storage
from artifacts.models import StorageRoot
from artifacts.serializers import StorageRootShown
from artifacts.serializers_orders import ReasonGiven, StorageRootRegistration, StorageRootRevision
from nodes import idempotency
from nodes.api_control import version_asked
from nodes.callers import IsOperator, IsReader, Refused, caller_of
from nodes.idempotency import Made
from nodes.models import Node
from nodes.query import OneOf, Paged, Pages, read_body, read_query


class StorageRootQuery(Paged):
    """The filters of the list; each narrows it."""

    node = serializers.UUIDField(required=False)
    state = OneOf(
        choices=StorageRoot.State.values, required=False, help_text="Retired roots are left out unless asked for."
    )
    q = serializers.CharField(max_length=255, required=False, help_text="Part of a path, purpose, node or the id.")


IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag of the storage root as it was read; `*` for whatever stands.",
)


def shown(root: StorageRoot, *, status: int = 200) -> Response:
    """The root as it is now, with its version as the ETag."""
    fresh = listed.roots().get(pk=root.pk)
    return Response(StorageRootShown(fresh).data, status=status, headers={"ETag": f'"{fresh.version}"'})


class StorageRootList(generics.GenericAPIView[StorageRoot]):
    """Storage roots: the list, and a new one."""

    serializer_class = StorageRootShown
    pagination_class = Pages
    filter_backends = ()
    queryset = StorageRoot.objects.none()

    def get_permissions(self) -> list[BasePermission]:
        """Readers read, operators register."""
        return [IsReader() if self.request.method in SAFE_METHODS else IsOperator()]

    @extend_schema(
        operation_id="storage_roots_list",
        tags=["admin"],
        summary="List storage roots",
        parameters=[StorageRootQuery],
        responses=StorageRootShown(many=True),
    )
    def get(self, request: Request) -> Response:
        """One page, by node and path."""
        found = narrowed(listed.roots(), read_query(request, StorageRootQuery))
        page = self.paginate_queryset(found.order_by("node__display_name", "container_path", "id"))
        return self.get_paginated_response(StorageRootShown(page, many=True).data)

    @extend_schema(
        operation_id="storage_roots_create",
        tags=["admin"],
        summary="Register a storage root",
        request=StorageRootRegistration,
        responses={201: StorageRootShown},
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request) -> Response:
        """Register a folder; its agent proves it before any job runs there."""
        by, now = caller_of(request), datetime.now(UTC)

        def make() -> Made:
            body = read_body(request, StorageRootRegistration)
            node = node_named(body.pop("node_id"))
            root = storage.register(node, **body, by=by, now=now)
            return Made(StorageRootShown(listed.roots().get(pk=root.pk)).data, created=str(root.pk))

        return idempotency.once(request, make, by=by, now=now)


def narrowed(roots: QuerySet[StorageRoot], wanted: dict[str, Any]) -> QuerySet[StorageRoot]:
    """The roots that match every filter."""
    if "node" in wanted:
        roots = roots.filter(node_id=wanted["node"])
    retired = StorageRoot.State.RETIRED
    roots = roots.filter(state=wanted["state"]) if "state" in wanted else roots.exclude(state=retired)
    return roots.filter(listed.roots_matching(wanted["q"])) if "q" in wanted else roots


def node_named(id: UUID) -> Node:
    """The node of that id.

    Raises:
        Refused: ``invalid``, naming the field.
    """
    node = Node.objects.filter(pk=id).first()
    if node is None:
        raise missing("node_id", "There is no such node.")
    return node


def missing(field: str, detail: str) -> Refused:
    """A refusal of a body that names what is not there."""
    return Refused(Code.INVALID, f"{field}: {detail}", errors=[FieldError(field=field, detail=detail)])


class StorageRootDetail(generics.GenericAPIView[StorageRoot]):
    """One storage root."""

    serializer_class = StorageRootShown
    lookup_url_kwarg = "id"
    filter_backends = ()
    queryset = StorageRoot.objects.all()

    def get_permissions(self) -> list[BasePermission]:
        """Readers read, operators revise."""
        return [IsReader() if self.request.method in SAFE_METHODS else IsOperator()]

    @extend_schema(operation_id="storage_roots_retrieve", tags=["admin"], summary="Read a storage root")
    def get(self, request: Request, **kwargs: Any) -> Response:
        """The root, with its version as the ETag."""
        root = get_object_or_404(listed.roots(), pk=kwargs["id"])
        return Response(StorageRootShown(root).data, headers={"ETag": f'"{root.version}"'})

    @extend_schema(
        operation_id="storage_roots_revise",
        tags=["admin"],
        summary="Revise a storage root",
        parameters=[IF_MATCH],
        request=StorageRootRevision,
        responses=StorageRootShown,
    )
    def patch(self, request: Request, **kwargs: Any) -> Response:
        """Revise it."""
        by, now, root = caller_of(request), datetime.now(UTC), self.get_object()
        version = version_asked(request.headers.get("If-Match"), root.version, what="storage root")
        if not isinstance(request.data, dict):
            raise Refused(Code.INVALID, "Send an object with the fields to change.")
        return shown(storage.revise(root, dict(request.data), version=version, by=by, now=now))


class StorageRootVerb(generics.GenericAPIView[StorageRoot]):
    """What operators do to a root, with a reason."""

    permission_classes = [IsOperator]
    serializer_class = StorageRootShown
    lookup_url_kwarg = "id"
    filter_backends = ()
    queryset = StorageRoot.objects.all()

    def do(self, request: Request, act: Callable[..., StorageRoot]) -> Response:
        """Read, act, answer."""
        by, now = caller_of(request), datetime.now(UTC)
        return shown(act(self.get_object(), **read_body(request, ReasonGiven), by=by, now=now))


class StorageRootRetire(StorageRootVerb):
    """Retire a root: no job runs there any more, and what lies there stays."""

    @extend_schema(
        operation_id="storage_roots_retire",
        tags=["admin"],
        summary="Retire a storage root",
        request=ReasonGiven,
        responses=StorageRootShown,
    )
    def post(self, request: Request, **kwargs: Any) -> Response:
        """Retire it."""
        return self.do(request, storage.retire)


class StorageRootApprove(StorageRootVerb):
    """Take the folder as its agent finds it next: the marker is written anew, the device recorded."""

    @extend_schema(
        operation_id="storage_roots_approve",
        tags=["admin"],
        summary="Approve a storage root again",
        request=ReasonGiven,
        responses=StorageRootShown,
    )
    def post(self, request: Request, **kwargs: Any) -> Response:
        """Approve it."""
        return self.do(request, storage.approve_again)
