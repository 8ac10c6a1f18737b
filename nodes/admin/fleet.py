"""The fleet as the pages ask for it: nodes with their liveness at an instant and their warnings, in one query."""

from datetime import datetime, timedelta

from django.db.models import (
    BooleanField,
    Case,
    Count,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from nodes.liveness import Liveness
from nodes.models import Accelerator, CredentialState, Node

SKEW_TOLERATED = timedelta(seconds=60)


def is_online(now: datetime) -> Q:
    """Heard in time, whether or not a sweep has looked since."""
    return Q(heartbeat__liveness=Liveness.ONLINE, heartbeat__stale_at__gt=now)


def is_offline(now: datetime) -> Q:
    """Marked so, or past its offline deadline, or never heard at all."""
    return Q(heartbeat__isnull=True) | Q(heartbeat__liveness=Liveness.OFFLINE) | Q(heartbeat__offline_at__lte=now)


def is_(state: Liveness, now: datetime) -> Q:
    """The nodes that show ``state`` at ``now``."""
    match state:
        case Liveness.ONLINE:
            return is_online(now)
        case Liveness.OFFLINE:
            return is_offline(now)
    return ~is_online(now) & ~is_offline(now)


SKEWED = Q(heartbeat__clock_skew_seconds__gt=SKEW_TOLERATED.total_seconds()) | Q(
    heartbeat__clock_skew_seconds__lt=-SKEW_TOLERATED.total_seconds()
)
LACKS_ACCELERATOR = Q(pk__in=Accelerator.objects.filter(missing_since__isnull=False).order_by().values("node"))
"""Asked once, not once a node: PostgreSQL would run an EXISTS for each row of an aggregate."""
TLS_UNVERIFIED = Q(facts__agent__tls_verify=False)

FLAGS: dict[str, tuple[str, Q]] = {
    "conflict": ("Identity conflict", Q(identity_conflict_at__isnull=False)),
    "protocol": ("Protocol refused", Q(protocol_refused_at__isnull=False)),
    "refused": ("Last contact refused", ~Q(refused_code="")),
    "held_back": ("Held back", Q(held_back_at__isnull=False)),
    "rotation": ("Rotation pending", Q(credential_state=CredentialState.ROTATING)),
    "tls": ("TLS not verified", TLS_UNVERIFIED),
    "skew": ("Clock skew over 60 s", SKEWED),
    "missing": ("Accelerator missing", LACKS_ACCELERATOR),
    "runtime": ("GPU runtime failed", Q(facts__gpu_runtime__state="failed")),
    "stopped": ("Stopped as planned", Q(heartbeat__stopped_at__isnull=False)),
}


def needs_attention(now: datetime) -> Q:
    """What an operator should look at: silence that nobody planned, refusals, and warnings. Not what was disabled."""
    silent = ~is_online(now) & Q(heartbeat__last_heard_at__isnull=False, heartbeat__stopped_at__isnull=True)
    flagged = Q(credential_state=CredentialState.REVOKED)
    for key in ("conflict", "protocol", "refused", "held_back", "tls", "skew", "missing", "runtime"):
        flagged |= FLAGS[key][1]
    return Q(retired_at__isnull=True, enabled=True) & (silent | flagged)


def fleet(now: datetime) -> QuerySet[Node]:
    """Nodes with what lists show of them; the large facts stay in the database."""
    devices = Accelerator.objects.filter(node=OuterRef("pk"), kind="gpu", missing_since__isnull=True).order_by()
    vram = devices.values("node").annotate(sum=Sum("memory_bytes")).values("sum")
    missing = (
        Accelerator.objects.filter(node=OuterRef("pk"), missing_since__isnull=False)
        .order_by()
        .values("node")
        .annotate(count=Count("pk"))
        .values("count")
    )
    return (
        Node.objects.select_related("heartbeat")
        .defer("facts", "labels")
        .annotate(
            rank=Case(
                When(is_online(now), then=Value(0)),
                When(is_offline(now), then=Value(2)),
                default=Value(1),
                output_field=IntegerField(),
            ),
            heard_at=F("heartbeat__last_heard_at"),
            vram_bytes=Coalesce(Subquery(vram), Value(0)),
            missing_accelerators=Coalesce(Subquery(missing), Value(0)),
            tls_unverified=Case(
                When(TLS_UNVERIFIED, then=Value(True)), default=Value(False), output_field=BooleanField()
            ),
            agent_ca=KT("facts__agent__ca"),
            gpu_state=KT("facts__gpu_runtime__state"),
            gpu_message=KT("facts__gpu_runtime__message"),
        )
    )
