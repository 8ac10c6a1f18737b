"""The registry by REST, to read: the fleet in pages, one node whole, and what it measured over time."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from nodes import fleet, series
from nodes.callers import IsReader
from nodes.liveness import Liveness
from nodes.models import CredentialState, Node
from nodes.query import Flag, Label, OneOf, Paged, Pages, Strict, read_query
from nodes.serializers import NodeSummary, NodeWhole
from nodes.serializers_parts import SeriesShown

ORDERINGS = {
    "display_name": "display_name",
    "hostname": "hostname",
    "liveness": "liveness_now",
    "last_heard_at": "heartbeat__last_heard_at",
    "enrolled_at": "enrolled_at",
    "agent_version": "agent_version",
}
MAX_SPAN = timedelta(days=31)


class NodeQuery(Paged):
    """The filters of the node list; each narrows it."""

    liveness = OneOf(choices=[state.value for state in Liveness], required=False)
    enabled = Flag(required=False)
    retired = Flag(required=False, help_text="Retired nodes are left out unless asked for.")
    role = serializers.CharField(max_length=64, required=False)
    label = serializers.ListField(  # type: ignore[assignment]
        child=Label(max_length=320), required=False, max_length=8, help_text="key:value; may be given several times."
    )
    eligibility = OneOf(
        choices=["production", "lab", "benchmark"], required=False, help_text="Eligible for it, and enabled."
    )
    credential_state = OneOf(choices=CredentialState.values, required=False)
    q = serializers.CharField(max_length=255, required=False, help_text="Part of a name, address, model or UUID.")
    ordering = OneOf(choices=[*ORDERINGS, *(f"-{name}" for name in ORDERINGS)], default="display_name")


class NodeList(generics.ListAPIView[Node]):
    """The nodes, in pages; their liveness is that of the moment of the answer."""

    permission_classes = [IsReader]
    serializer_class = NodeSummary
    pagination_class = Pages
    filter_backends = ()
    queryset = Node.objects.none()

    @extend_schema(tags=["hardware"], summary="List nodes", parameters=[NodeQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page."""
        self.now = datetime.now(UTC)
        self.wanted = read_query(request, NodeQuery)
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Node]:
        """The nodes that the filters leave, in order."""
        name = self.wanted["ordering"].lstrip("-")
        field = F(ORDERINGS[name])
        down = self.wanted["ordering"].startswith("-")
        order = field.desc(nulls_last=True) if down else field.asc(nulls_last=True)
        return narrowed(fleet.listed(self.now), self.wanted).order_by(order, "id")

    def get_serializer_context(self) -> dict[str, Any]:
        """Ages count from the instant of the question."""
        return {**super().get_serializer_context(), "now": getattr(self, "now", None)}


def narrowed(nodes: QuerySet[Node], wanted: dict[str, Any]) -> QuerySet[Node]:
    """The nodes that match every filter."""
    filters = Q(retired_at__isnull=not wanted.get("retired", False))
    if "liveness" in wanted:
        filters &= Q(liveness_now=wanted["liveness"])
    for name in ("enabled", "role", "credential_state"):
        if name in wanted:
            filters &= Q(**{name: wanted[name]})
    if "eligibility" in wanted:
        filters &= Q(**{f"{wanted['eligibility']}_eligible": True}, enabled=True)
    for place, (key, value) in enumerate(wanted.get("label", [])):
        nodes = nodes.alias(**{f"label_{place}": fleet.LabelText(key)})
        filters &= Q(**{f"label_{place}": value})
    if "q" in wanted:
        filters &= fleet.matching(wanted["q"])
    return nodes.filter(filters)


class OneNode(generics.GenericAPIView[Node]):
    """What all views of one node share: how it is found and how it is shown."""

    lookup_url_kwarg = "id"
    serializer_class: type[serializers.BaseSerializer[Any]] = NodeWhole
    filter_backends = ()
    queryset = Node.objects.all()

    def shown(self, node: Node, now: datetime) -> Response:
        """The whole node as it is now, with its version as the ETag."""
        fresh = fleet.whole(now).get(pk=node.pk)
        return Response(NodeWhole(fresh, context={"now": now}).data, headers={"ETag": f'"{fresh.version}"'})


class NodeDetail(OneNode):
    """One node, with all that is known of it; never a secret."""

    permission_classes = [IsReader]

    @extend_schema(tags=["hardware"], summary="Read a node")
    def get(self, request: Request, **kwargs: Any) -> Response:
        """The node."""
        now = datetime.now(UTC)
        self.queryset = fleet.whole(now)
        node = self.get_object()
        return Response(NodeWhole(node, context={"now": now}).data, headers={"ETag": f'"{node.version}"'})


class SeriesQuery(Strict):
    """The span to draw."""

    since = serializers.DateTimeField(required=False, help_text="An hour before `until` unless told.")
    until = serializers.DateTimeField(required=False, help_text="Now unless told.")
    points = serializers.IntegerField(min_value=2, max_value=series.MAX_POINTS, default=series.DEFAULT_POINTS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A span that runs forward, and no longer than samples are kept."""
        until = attrs.setdefault("until", datetime.now(UTC))
        try:
            since = attrs.setdefault("since", until - timedelta(hours=1))
        except OverflowError as fault:
            raise serializers.ValidationError({"until": ["Give an instant of our age."]}) from fault
        if since >= until:
            raise serializers.ValidationError({"since": ["Give an instant before `until`."]})
        if until - since > MAX_SPAN:
            raise serializers.ValidationError({"since": [f"Give at most {MAX_SPAN.days} days."]})
        return attrs


class NodeTelemetry(OneNode):
    """What one node measured over time, made ready to draw."""

    permission_classes = [IsReader]
    serializer_class = SeriesShown

    @extend_schema(
        tags=["hardware"], summary="Read a node's telemetry", parameters=[SeriesQuery], responses=SeriesShown
    )
    def get(self, request: Request, **kwargs: Any) -> Response:
        """The lines."""
        return Response(SeriesShown(series.draw(self.get_object(), **read_query(request, SeriesQuery))).data)
