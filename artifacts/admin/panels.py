"""What a node's page shows of artifacts: its storage roots, jobs, artifacts, and the files in its quarantine."""

from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html

from artifacts import listed, room, standing
from artifacts.admin import tables
from artifacts.admin.roots import fullness, reserve, state
from artifacts.admin.subjects import link, list_of
from artifacts.models import Artifact, Job, QuarantinedFile, StorageRoot
from nodes.admin.node_page import PANELS
from nodes.admin.rows import Button, Panel, Row
from nodes.models import Node
from nodes.wording import DASH, size

SHOWN = 8
QUARANTINED_SHOWN = 20


def roots(node: Node, now: datetime) -> Panel:
    """The folders that models are brought to."""
    found = listed.roots().filter(node=node).exclude(state=StorageRoot.State.RETIRED)
    table = []
    for root in found.order_by("container_path", "id"):
        left = room.of_listed(root)
        table.append(
            [
                format_html('{}<span class="mf-line mf-subtle mf-clip">{}</span>', link(root), root.host_path),
                state(root),
                fullness(root, now),
                reserve(root),
                size(left.reserved_bytes) if left.reserved_bytes else DASH,
                size(left.artifact_bytes) if left.artifact_bytes else DASH,
            ]
        )
    buttons = []
    if node.retired_at is None:
        add = f"{reverse('admin:artifacts_storageroot_add')}?node={node.pk}"
        buttons = [Button("Register", add, "create_new_folder")]
    rows = [] if table else [Row("None registered", "models have nowhere to go on this node")]
    return Panel(
        "Storage roots", rows, ["Folder", "State", "Disk", "Reserve", "Reserved by jobs", "Artifacts"], table, buttons
    )


def jobs(node: Node, now: datetime) -> Panel:
    """The newest jobs, those that have not ended first."""
    newest = list(listed.jobs().filter(node=node).order_by("-created_at")[:SHOWN])
    active = listed.jobs().filter(node=node, state__in=Job.ACTIVE).order_by("-state", "created_at")[:SHOWN]
    shown = {job.pk: job for job in [*active, *newest]}
    table = tables.jobs(list(shown.values())[:SHOWN], now, with_node=False)
    buttons = [Button("Order a model", reverse("admin:artifacts_job_add"), "download")]
    rows = [] if table.rows else [Row("None", "nothing was ordered yet")]
    more = list_of(Job, node=node.pk) if table.rows else ""
    return Panel("Jobs", rows, table.headers, table.rows, buttons if node.retired_at is None else [], more)


def artifacts(node: Node, now: datetime) -> Panel:
    """The newest artifacts."""
    kept = listed.artifacts().filter(standing.HERE, node=node).order_by("-published_at")
    table = tables.artifacts(kept[:SHOWN], now, with_node=False)
    gone = Artifact.objects.filter(standing.shows(standing.GONE), node=node).count()
    rows = [] if table.rows else [Row("None", "nothing lies here" if gone else "nothing was published yet")]
    if gone:
        rows.append(Row("Gone with retired roots", str(gone), "All of them: by the filter state: gone"))
    more = list_of(Artifact, node=node.pk, **({} if table.rows else {"state": standing.GONE}))
    return Panel("Artifacts", rows, table.headers, table.rows, more_url=more if table.rows or gone else "")


def quarantine(node: Node, now: datetime) -> Panel:
    """The files whose bytes were not what their repository says."""
    files = QuarantinedFile.objects.filter(node=node).select_related("job")
    table = tables.quarantined(files[:QUARANTINED_SHOWN], now)
    rows = [] if table.rows else [Row("None", "no file of this node had wrong bytes")]
    return Panel("Quarantined files", rows, table.headers, table.rows)


PANELS += [roots, jobs, artifacts, quarantine]
