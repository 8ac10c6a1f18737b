"""What a sweep costs: 1,000, 10,000 and 100,000 nodes, with none and with 100 overdue."""

import statistics
import time
from datetime import UTC, datetime, timedelta

from django.core.management import call_command
from django.db import connection

from bench.fleet import enlist
from bench.report import Report
from nodes import heartbeats
from nodes.models import ControlPlane, Heartbeat

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 7


def main(report: Report) -> None:
    """Sweep the database that the settings name, as it grows."""
    call_command("migrate", verbosity=0)
    vendor = connection.vendor
    report.heading(f"A sweep, on {vendor}")
    report.row("nodes", "none overdue", "100 overdue")
    now, size = datetime.now(UTC), Heartbeat.objects.count()
    for wanted in SIZES:
        enlist(wanted - size, now=now, credentials=False)
        size = wanted
        if vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
        idle = [_sweep(now, 0) for _ in range(ROUNDS)]
        busy = [_sweep(now, 100) for _ in range(ROUNDS)]
        report.row(f"{wanted:,}", *(f"{statistics.median(times) * 1000:.1f} ms" for times in (idle, busy)))
    report.bound(f"ms a sweep of 100,000, none overdue, {vendor}", statistics.median(idle) * 1000, most=30)


def _sweep(now: datetime, overdue: int) -> float:
    ControlPlane.objects.update_or_create(id=1, defaults={"swept_at": now, "counted_at": now})
    late = list(Heartbeat.objects.filter(liveness="online").order_by("pk").values_list("pk", flat=True)[:overdue])
    Heartbeat.objects.filter(pk__in=late).update(stale_at=now - timedelta(seconds=1))
    start = time.perf_counter()
    swept = heartbeats.sweep(now=now + timedelta(seconds=5))
    took = time.perf_counter() - start
    assert swept.stale == overdue, swept
    Heartbeat.objects.filter(pk__in=late).update(liveness="online", stale_at=now + timedelta(hours=2))
    return took
