"""``/metrics``: the fleet as Prometheus reads it, asked of the database at each scrape."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, JSONField, OuterRef, Q, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from artifacts import standing
from artifacts.models import Artifact, Job, StorageRoot
from enrollment.auth import ADMIN_TOKEN_HEADER, AdminTokenAuthentication, Machine
from nodes.audit import events
from nodes.callers import Caller, IsReader
from nodes.event_types import EventType
from nodes.liveness import Liveness
from nodes.models import Accelerator, ControlPlane, Heartbeat, Node, TelemetrySample

MOST_NODES = 2000
"""Whose measurements are told, so that a scrape stays bounded; the counts are of all."""

FRESH = 5
"""Telemetry intervals after which a measurement is too old to be told as the present one."""

_MEASURED = {
    "utilization_percent": ("modelforge_accelerator_utilization_ratio", "Utilisation, 0 to 1", 0.01),
    "memory_used_bytes": ("modelforge_accelerator_memory_used_bytes", "Memory in use", 1),
    "memory_free_bytes": ("modelforge_accelerator_memory_free_bytes", "Memory free", 1),
    "temperature_celsius": ("modelforge_accelerator_temperature_celsius", "Temperature", 1),
    "power_watts": ("modelforge_accelerator_power_watts", "Power drawn", 1),
}


_OF_A_ROOT = ("state", "container_path", "free_bytes", "total_bytes", "proven_at", "node__display_name")


class ScrapeAuthentication(AdminTokenAuthentication):
    """As everywhere, and also as Prometheus sends it: ``Authorization: Bearer`` with the admin token or an API key."""

    def authenticate(self, request: Request) -> tuple[Machine, Caller] | None:
        """The caller that either header proves."""
        meta = "HTTP_" + ADMIN_TOKEN_HEADER.upper().replace("-", "_")
        scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() == "bearer" and meta not in request.META:
            request.META[meta] = secret.strip()
        return super().authenticate(request)


@extend_schema(exclude=True)
class Metrics(APIView):
    """The scrape."""

    authentication_classes = (ScrapeAuthentication, SessionAuthentication)
    throttle_classes = ()

    def get_permissions(self) -> list[BasePermission]:
        """Readers, unless ``MODELFORGE_METRICS_PUBLIC`` opens it to all."""
        return [AllowAny() if settings.METRICS_PUBLIC else IsReader()]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Prometheus asks for types of its own; it is always given the text format."""
        return super().perform_content_negotiation(request, force=True)

    def get(self, request: HttpRequest) -> HttpResponse:
        """Count, and tell."""
        registry = CollectorRegistry()
        registry.register(Fleet(datetime.now(UTC)))
        return HttpResponse(
            generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
        )


class Fleet(Collector):
    """Everything that is told, as it stands at ``now``."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterable[Metric]:
        """The metrics, one after the other."""
        yield self._nodes()
        yield self._flags()
        yield self._accelerators()
        yield from self._control_plane()
        yield from self._measured()
        yield self._jobs()
        yield from self._artifacts()
        yield from self._roots()

    def _nodes(self) -> Metric:
        metric = GaugeMetricFamily("modelforge_nodes", "Nodes that are not retired", labels=["liveness", "enabled"])
        hearts = Heartbeat.objects.filter(node__retired_at=None).values_list(
            "liveness", "node__enabled", "stale_at", "offline_at"
        )
        counts = Counter[tuple[Liveness, bool]]({(state, on): 0 for state in Liveness for on in (True, False)})
        for liveness, enabled, stale_at, offline_at in hearts.iterator(5000):
            heart = Heartbeat(liveness=liveness, stale_at=stale_at, offline_at=offline_at)
            counts[heart.seen_at(self.now), enabled] += 1
        for (state, enabled), count in sorted(counts.items()):
            metric.add_metric([state.value, "true" if enabled else "false"], count)
        return metric

    def _flags(self) -> Metric:
        metric = GaugeMetricFamily("modelforge_nodes_flagged", "Nodes that want an operator's eye", labels=["flag"])
        flags = {
            "identity_conflict": Q(identity_conflict_at__isnull=False),
            "protocol_refused": ~Q(protocol_refused=""),
            "refused": ~Q(refused_code=""),
            "held_back": Q(held_back_at__isnull=False),
            "rotation_pending": Q(credential_state="rotating"),
        }
        wanted = {flag: Count("pk", filter=condition) for flag, condition in flags.items()}
        for flag, count in Node.objects.filter(retired_at=None).aggregate(**wanted).items():
            metric.add_metric([flag], count)
        return metric

    def _accelerators(self) -> Metric:
        metric = GaugeMetricFamily("modelforge_accelerators", "Accelerators seen in nodes", labels=["kind", "missing"])
        seen = Accelerator.objects.filter(node__retired_at=None).order_by()
        for row in seen.values("kind").annotate(
            present=Count("pk", filter=Q(missing_since=None)),
            missing=Count("pk", filter=Q(missing_since__isnull=False)),
        ):
            metric.add_metric([row["kind"], "false"], row["present"])
            metric.add_metric([row["kind"], "true"], row["missing"])
        return metric

    def _control_plane(self) -> Iterator[Metric]:
        plane = ControlPlane.objects.filter(id=1).first()
        if plane is not None and plane.swept_at is not None:
            age = (self.now - plane.swept_at).total_seconds()
            yield GaugeMetricFamily("modelforge_last_sweep_age_seconds", "Seconds since a sweep ran to its end", age)
            yield GaugeMetricFamily(
                "modelforge_granted_interval_seconds", "Heartbeat interval that nodes are told", plane.interval_seconds
            )
        gaps = events().filter(type=EventType.CONTROL_PLANE_GAP).count()
        yield CounterMetricFamily("modelforge_control_plane_gaps", "Absences of the control plane itself", gaps)

    def _measured(self) -> Iterator[Metric]:
        labels = ["node_id", "node", "accelerator"]
        gauges = {field: GaugeMetricFamily(name, text, labels=labels) for field, (name, text, _) in _MEASURED.items()}
        for node_id, name, data in self._newest():
            for device in data["accelerators"]:
                for field, (_, _, scale) in _MEASURED.items():
                    value = device[field].get("value")
                    if value is not None:  # a reason is no number: nothing is told, never 0
                        gauges[field].add_metric([str(node_id), name, device["key"]], value * scale)
        yield from gauges.values()

    def _jobs(self) -> Metric:
        metric = GaugeMetricFamily("modelforge_jobs", "Jobs by where they stand", labels=["state"])
        counts = dict(Job.objects.order_by().values_list("state").annotate(count=Count("pk")))
        for state in Job.State.values:
            metric.add_metric([state], counts.get(state, 0))
        return metric

    def _artifacts(self) -> Iterator[Metric]:
        counts = GaugeMetricFamily("modelforge_artifacts", "Artifacts that lie on nodes", labels=["state"])
        sizes = GaugeMetricFamily("modelforge_artifact_bytes", "Bytes of artifacts that lie on nodes", labels=["state"])
        kept = Artifact.objects.filter(standing.HERE).order_by()
        found = {row[0]: row[1:] for row in kept.values_list("state").annotate(count=Count("pk"), sum=Sum("bytes"))}
        for state in (Artifact.State.PUBLISHED, Artifact.State.DAMAGED):
            count, total = found.get(state, (0, 0))
            counts.add_metric([state], count)
            sizes.add_metric([state], total)
        yield from (counts, sizes)

    def _roots(self) -> Iterator[Metric]:
        labels = ["node_id", "node", "root_id", "path"]
        verified = GaugeMetricFamily("modelforge_storage_root_verified", "1 where its agent proved it", labels=labels)
        free = GaugeMetricFamily("modelforge_storage_root_free_bytes", "Free at the last proof", labels=labels)
        total = GaugeMetricFamily("modelforge_storage_root_size_bytes", "Size of its file system", labels=labels)
        age = GaugeMetricFamily("modelforge_storage_root_proof_age_seconds", "Since its last proof", labels=labels)
        roots = StorageRoot.objects.filter(node__retired_at=None).exclude(state=StorageRoot.State.RETIRED)
        for root in roots.select_related("node").only(*_OF_A_ROOT).order_by("pk")[:MOST_NODES]:
            told = [str(root.node_id), root.node.display_name, str(root.pk), root.container_path]
            verified.add_metric(told, root.state == StorageRoot.State.VERIFIED)
            if root.proven_at is None:
                continue  # nothing was measured, which is not 0
            age.add_metric(told, (self.now - root.proven_at).total_seconds())
            for metric, amount in ((free, root.free_bytes), (total, root.total_bytes)):
                if amount is not None:
                    metric.add_metric(told, amount)
        yield from (verified, free, total, age)

    def _newest(self) -> Iterator[tuple[Any, str, dict[str, Any]]]:
        since = self.now - max(FRESH * settings.TELEMETRY_INTERVAL, timedelta(minutes=1))
        newest = TelemetrySample.objects.filter(node=OuterRef("pk"), at__gte=since).order_by("-at")
        nodes = Node.objects.filter(retired_at=None).annotate(
            sample=Subquery(newest.values("data")[:1], output_field=JSONField())
        )
        rows = nodes.exclude(sample=None).order_by("pk").values_list("pk", "display_name", "sample")[:MOST_NODES]
        yield from rows
