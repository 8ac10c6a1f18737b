"""The history by REST: pages for a reader, the whole as NDJSON or CSV for an archive."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import generics, serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from nodes import export
from nodes.audit import events
from nodes.callers import IsReader
from nodes.event_types import EventType
from nodes.models import AuditEvent  # noqa: TID251  one of the two pages that show it
from nodes.query import OneOf, Strict, read_query

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 500


class EventShown(serializers.ModelSerializer[AuditEvent]):
    """One thing that happened; ``position`` and the hashes prove its place in the chain."""

    type = serializers.CharField()

    class Meta:
        model = AuditEvent
        fields = [
            "position",
            "type",
            "at",
            "recorded_at",
            "actor_kind",
            "actor_role",
            "actor_id",
            "actor_label",
            "address",
            "request_id",
            "about_kind",
            "about_id",
            "about_label",
            "node_id",
            "details",
            "previous_hash",
            "hash",
        ]
        read_only_fields = fields


class EventQuery(Strict):
    """The filters of the history; each narrows it."""

    type = serializers.ListField(
        child=OneOf(choices=EventType.values), required=False, help_text="May be given several times."
    )
    node = serializers.UUIDField(required=False)
    actor = serializers.CharField(max_length=255, required=False, help_text="Who did it: kind, id or label.")
    since = serializers.DateTimeField(required=False, help_text="Happened at or after.")
    until = serializers.DateTimeField(required=False, help_text="Happened before.")
    q = serializers.CharField(max_length=255, required=False, help_text="Part of a label, id, address or detail.")
    cursor = serializers.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, help_text="Events before this position."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=MAX_PAGE_SIZE, default=DEFAULT_PAGE_SIZE)
    format = OneOf(
        choices=["json", "ndjson", "csv"],
        default="json",
        help_text="ndjson and csv stream all events that match, oldest first.",
    )


class EventPages(BasePagination):
    """Pages by position, newest first: what is recorded meanwhile moves no page."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The events before the cursor, and whether there are more."""
        size = view.wanted["page_size"]
        if "cursor" in view.wanted:
            queryset = queryset.filter(position__lt=view.wanted["cursor"])
        found = list(queryset.order_by("-position")[: size + 1])
        page = found[:size]
        self.next = None
        if len(found) > size:
            self.next = replace_query_param(request.build_absolute_uri(), "cursor", page[-1].position)
        return page

    def get_paginated_response(self, data: Any) -> Response:
        """The page and the address of the next."""
        return Response({"next": self.next, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """For the OpenAPI document."""
        return {
            "type": "object",
            "required": ["next", "results"],
            "properties": {
                "next": {"type": "string", "format": "uri", "nullable": True},
                "results": schema,
            },
        }


class FormatDecides(BaseContentNegotiation):
    """``?format=`` chooses; whatever ``Accept`` says, problems and pages are JSON."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The only one."""
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The only one."""
        return renderers[0], renderers[0].media_type


class AuditEventList(generics.ListAPIView[AuditEvent]):
    """Who did what, when, from where: newest first, in pages."""

    permission_classes = [IsReader]
    serializer_class = EventShown
    pagination_class = EventPages
    content_negotiation_class = FormatDecides
    filter_backends = ()
    queryset = AuditEvent.objects.none()

    @extend_schema(
        tags=["audit"],
        summary="Read the history",
        parameters=[EventQuery],
        responses={
            (200, "application/json"): EventShown(many=True),
            (200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.STR, "One event a line."),
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, "One event a row."),
        },
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """One page, or the whole as a stream."""
        self.wanted = read_query(request, EventQuery)
        if self.wanted["format"] == "json":
            return super().get(request, *args, **kwargs)
        return streamed(self.get_queryset(), self.wanted["format"])

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """The events that the filters leave."""
        return narrowed(events(), self.wanted)


def narrowed(found: QuerySet[AuditEvent], wanted: dict[str, Any]) -> QuerySet[AuditEvent]:
    """The events that match every filter."""
    filters = Q()
    for name, lookup in (("type", "type__in"), ("node", "node_id"), ("since", "at__gte"), ("until", "at__lt")):
        if name in wanted:
            filters &= Q(**{lookup: wanted[name]})
    if "actor" in wanted:
        actor = wanted["actor"]
        filters &= Q(actor_id=actor) | Q(actor_kind=actor) | Q(actor_label__iexact=actor)
    if "q" in wanted:
        words = Q(details_text__icontains=wanted["q"])
        for name in ("type", "actor_label", "about_label", "about_id", "address", "request_id"):
            words |= Q(**{f"{name}__icontains": wanted["q"]})
        found = found.alias(details_text=Cast("details", TextField()))
        filters &= words
    return found.filter(filters)


def streamed(found: QuerySet[AuditEvent], form: str) -> StreamingHttpResponse:
    """All of it, read and sent a piece at a time."""
    rows = _rows(found)
    lines = export.ndjson(rows) if form == "ndjson" else export.table(rows, EventShown.Meta.fields)
    kind = "application/x-ndjson" if form == "ndjson" else "text/csv; charset=utf-8"
    response = StreamingHttpResponse(lines, content_type=kind)
    name = f"modelforge-audit-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def _rows(found: QuerySet[AuditEvent]) -> Iterator[dict[str, Any]]:
    for event in export.in_chunks(found):
        yield dict(EventShown(event).data)
