"""The fleet as it is seen at an instant: liveness worked out by the database, right also between two sweeps."""

from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Exists, F, Func, OuterRef, Prefetch, Q, QuerySet, TextField, Value, When
from django.db.models.fields.json import KT

from nodes.liveness import Liveness
from nodes.models import Accelerator, Node, Volume

_OFFLINE = Q(heartbeat__isnull=True) | Q(heartbeat__liveness=Liveness.OFFLINE)


def liveness_at(now: datetime) -> Case:
    """The liveness that a node shows at ``now``, as ``nodes.liveness.seen_at`` decides it."""
    return Case(
        When(_OFFLINE | Q(heartbeat__offline_at__lte=now), then=Value(Liveness.OFFLINE)),
        When(Q(heartbeat__liveness=Liveness.STALE) | Q(heartbeat__stale_at__lte=now), then=Value(Liveness.STALE)),
        default=Value(Liveness.ONLINE),
        output_field=CharField(),
    )


class LabelText(Func):
    """The text of one label, whatever its key is made of, or NULL; ``nodes.labels.KEY`` keeps quotes out of keys."""

    function = "jsonb_extract_path_text"
    output_field = TextField()

    def __init__(self, key: str, **extra: Any) -> None:
        super().__init__(F("labels"), Value(key), **extra)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite takes a path."""
        labels, key = self.get_source_expressions()
        path = Func(labels, Value(f'$."{key.value}"'), function="JSON_EXTRACT", output_field=TextField())
        return compiler.compile(path)


def listed(now: datetime) -> QuerySet[Node]:
    """Nodes with what a list shows of them, in two queries; the large facts stay in the database."""
    brief = Accelerator.objects.only("node", "key", "kind", "index", "model", "memory_bytes", "missing_since")
    return (
        Node.objects.select_related("heartbeat")
        .defer("facts")
        .annotate(
            liveness_now=liveness_at(now),
            gpu_state=KT("facts__gpu_runtime__state"),
            tls_state=KT("facts__agent__tls_verify"),
        )
        .prefetch_related(Prefetch("accelerators", brief))
    )


def whole(now: datetime) -> QuerySet[Node]:
    """Nodes with all that a node's page shows, in three queries."""
    return (
        Node.objects.select_related("heartbeat")
        .annotate(
            liveness_now=liveness_at(now),
            gpu_state=KT("facts__gpu_runtime__state"),
            tls_state=KT("facts__agent__tls_verify"),
        )
        .prefetch_related("accelerators", Prefetch("volumes", Volume.objects.order_by("name")))
    )


def matching(words: str) -> Q:
    """Nodes whose name, host name, role, address, id or accelerators hold the words."""
    devices = Accelerator.objects.filter(Q(model__icontains=words) | Q(key__icontains=words), node=OuterRef("pk"))
    found = Q(Exists(devices))
    for name in ("display_name", "hostname", "role", "address"):
        found |= Q(**{f"{name}__icontains": words})
    compact = words.replace("-", "").lower()
    if len(compact) == 32 and all(letter in "0123456789abcdef" for letter in compact):
        found |= Q(pk=compact)
    return found
