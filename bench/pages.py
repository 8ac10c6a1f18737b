"""What the node list and the node page cost as the fleet grows: queries (constant) and seconds."""

import statistics
import time
import uuid
from datetime import UTC, datetime

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.fleet import enlist
from bench.report import Report
from nodes.models import Node

SIZES = (10, 10_000)


def main(report: Report) -> None:
    """The pages and their REST twins at 10 and at 10,000 nodes, two GPUs each."""
    call_command("migrate", verbosity=0)
    report.heading(f"Pages, on {connection.vendor}: queries, milliseconds")
    report.row("address", *(f"{size:,} nodes" for size in SIZES))
    person = get_user_model().objects.create_superuser(f"bench-{uuid.uuid4().hex[:8]}", password=uuid.uuid4().hex)
    client = Client(HTTP_HOST="localhost")
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    figures: dict[str, list[tuple[int, float]]] = {}
    size = Node.objects.count()
    for wanted in SIZES:
        enlist(max(0, wanted - size), now=datetime.now(UTC), gpus=2)
        size = max(size, wanted)
        some = Node.objects.order_by("pk").values_list("pk", flat=True).first()
        for name, address in {
            "home": "/admin/",
            "node list": "/admin/nodes/node/",
            "node page": f"/admin/nodes/node/{some}/change/",
            "REST list": "/api/v1/hardware/nodes",
            "REST node": f"/api/v1/hardware/nodes/{some}",
        }.items():
            figures.setdefault(name, []).append(_ask(client, address))
    for name, pair in figures.items():
        report.row(name, *(f"{queries} q {seconds * 1000:.0f} ms" for queries, seconds in pair))
        report.bound(f"more queries of the {name} at 10,000 nodes", pair[1][0] - pair[0][0], most=0)


def _ask(client: Client, address: str) -> tuple[int, float]:
    times = []
    client.get(address)
    for _ in range(5):
        start = time.perf_counter()
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address)
        times.append(time.perf_counter() - start)
        assert response.status_code == 200, (address, response.status_code)
    return len(queries), statistics.median(times)
