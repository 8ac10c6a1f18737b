"""The list "Storage roots", and each root's page: what its agent proved, how full it is, what lies there and runs."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts import listed, remedies, room, standing
from artifacts.admin import root_verbs, tables
from artifacts.admin.filters import NodeFilter, RootStateFilter
from artifacts.admin.flags import of_root
from artifacts.admin.progress import bar
from artifacts.admin.subjects import SubjectAdmin, link, list_of, name
from artifacts.capacity import Capacity
from artifacts.models import Artifact, HalfDone, Job, StorageRoot
from nodes.admin.access import clock, may_act
from nodes.admin.rows import Button, Row
from nodes.markup import badge, when
from nodes.wording import DASH, count, size

TONES = {
    StorageRoot.State.PENDING: "info",
    StorageRoot.State.VERIFIED: "success",
    StorageRoot.State.UNVERIFIED: "danger",
    StorageRoot.State.RETIRED: "neutral",
}
SHOWN = 10
HALF_DONE_SHOWN = 50


def state(root: StorageRoot) -> SafeString:
    """Its state, with the fault in the tooltip."""
    title = remedies.root_fault(root.fault)[0] if root.fault else ""
    return badge(root.state, TONES[StorageRoot.State(root.state)], title)


def reserve(root: StorageRoot) -> str:
    """What is to stay free, as it was said, and in bytes."""
    if root.reserve_bytes is not None:
        return size(root.reserve_bytes)
    amount = room.of_listed(root).reserve_bytes
    said = f"{root.reserve_percent:g} %"
    return said if amount is None else f"{said} · {size(amount)}"


def fullness(root: StorageRoot, now: datetime) -> SafeString | str:
    """Bar and words, with when it was measured."""
    found = room.of_listed(root)
    share = room.used_share(found)
    if share is None:
        return DASH
    measured = room.measured_at(root)
    return format_html(
        '<span class="mf-measure mf-progress">{}<span class="mf-line">{} free of {}</span>'
        '<span class="mf-line mf-subtle">{}</span></span>',
        bar(share, room.level(share)),
        size(found.free_bytes),
        size(found.total_bytes),
        when(measured, now) if measured else "",
    )


@admin.register(StorageRoot)
class StorageRootAdmin(SubjectAdmin):
    """Every storage root with what its agent proved last."""

    page = "modelforge/storage_root.html"
    named = "Storage roots"
    empty = "No storage root yet. Register a folder of a node; its agent proves it before any model is brought there."
    list_display = ["path", "state_shown", "node_shown", "room_shown", "reserve_shown", "holds", "proven"]
    list_filter = [RootStateFilter, NodeFilter]
    search_fields = ["container_path", "host_path", "purpose", "node__display_name"]
    search_help_text = "Path, purpose, node"
    ordering = ["node__display_name", "container_path", "id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[StorageRoot]:
        """With nodes, capacity and counts, in one query."""
        return listed.roots()

    def get_urls(self) -> list[URLPattern]:
        """The verbs come before the catch-all of the page."""
        return [*root_verbs.urls(self), *super().get_urls()]

    def add(self, request: HttpRequest) -> tuple[str, str]:
        """Register one."""
        return "Register root", reverse("admin:artifacts_storageroot_add")

    def find(self, key: UUID) -> StorageRoot | None:
        """The root with its node and figures."""
        return listed.roots().filter(pk=key).first()

    def context(self, subject: StorageRoot, request: HttpRequest, now: datetime) -> dict[str, Any]:
        """Proof, capacity, jobs, artifacts, verbs."""
        found = room.of_listed(subject)
        share = room.used_share(found)
        jobs = list(listed.jobs().filter(root=subject).order_by("-created_at")[: SHOWN + 1])
        kept = listed.artifacts().filter(root=subject).exclude(state=Artifact.State.REMOVED)
        artifacts = list(kept.order_by("-published_at")[: SHOWN + 1])
        return {
            "root": subject,
            "state": state(subject),
            "node_link": link(subject.node),
            "flags": list(of_root(subject, now)),
            "verbs": _verbs(subject) if may_act(request) else [],
            "order_url": _order_url(subject) if may_act(request) else "",
            "proof_rows": _proof(subject),
            "capacity_rows": _capacity(subject, found),
            "registered_rows": _registered(subject),
            "share": share,
            "level": room.level(share),
            "half_done": tables.half_done(_half_done(subject), now),
            "jobs": tables.jobs(jobs[:SHOWN], now, with_node=False),
            "jobs_url": list_of(Job, root=subject.pk) if len(jobs) > SHOWN else "",
            "artifacts": tables.artifacts(artifacts[:SHOWN], now, with_node=False),
            "artifacts_url": list_of(Artifact, root=subject.pk, **_gone(subject)) if len(artifacts) > SHOWN else "",
        }

    @admin.display(description="Root", ordering="container_path")
    def path(self, root: StorageRoot) -> SafeString:
        """Both paths."""
        return name(root, root.container_path, f"host: {root.host_path}")

    @admin.display(description="State", ordering="state")
    def state_shown(self, root: StorageRoot) -> SafeString:
        """The state, and what is wrong."""
        if not root.fault:
            return state(root)
        title, remedy = remedies.root_fault(root.fault)
        return format_html('{}<span class="mf-line mf-fault" title="{}">{}</span>', state(root), remedy, title)

    @admin.display(description="Node", ordering="node__display_name")
    def node_shown(self, root: StorageRoot) -> SafeString:
        """The node."""
        return link(root.node)

    @admin.display(description="Disk", ordering="free_bytes")
    def room_shown(self, root: StorageRoot) -> SafeString | str:
        """How full the file system is."""
        return fullness(root, clock())

    @admin.display(description="Reserve")
    def reserve_shown(self, root: StorageRoot) -> SafeString:
        """What is to stay free, and the ceiling."""
        ceiling = f"ceiling {size(root.ceiling_bytes)}" if root.ceiling_bytes is not None else ""
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle">{}</span>', reserve(root), ceiling
        )

    @admin.display(description="Artifacts", ordering="artifact_bytes")
    def holds(self, root: StorageRoot) -> SafeString | str:
        """What lies there."""
        count: int = root.artifacts_kept  # type: ignore[attr-defined]
        if not count:
            return DASH
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle">{} artifact{}</span>',
            size(root.artifact_bytes),  # type: ignore[attr-defined]
            count,
            "" if count == 1 else "s",
        )

    @admin.display(description="Proven", ordering="proven_at")
    def proven(self, root: StorageRoot) -> SafeString | str:
        """When all was well last."""
        return when(root.proven_at, clock()) if root.proven_at else "never"


def _verbs(root: StorageRoot) -> list[Button]:
    if root.state == StorageRoot.State.RETIRED:
        return []
    return [
        Button("Edit", root_verbs.verb(root, "edit"), "edit"),
        Button("Approve again", root_verbs.verb(root, "approve"), "verified"),
        Button("Retire", root_verbs.verb(root, "retire"), "archive", danger=True),
    ]


def _gone(root: StorageRoot) -> dict[str, str]:
    """The filter under which the artifacts of a retired root are listed."""
    return {"state": standing.GONE} if root.state == StorageRoot.State.RETIRED else {}


def _half_done(root: StorageRoot) -> list[HalfDone]:
    """What can be deleted by its job's page; nobody would do so on a retired root or node."""
    retired = root.state == StorageRoot.State.RETIRED or root.node.retired_at is not None
    return [] if retired else list(listed.half_done().filter(root=root)[:HALF_DONE_SHOWN])


def _order_url(root: StorageRoot) -> str:
    if root.state != StorageRoot.State.VERIFIED:
        return ""
    return f"{reverse('admin:artifacts_job_add')}?root={root.pk}"


def _proof(root: StorageRoot) -> list[Row]:
    rows = [
        Row("Proven", at=root.proven_at, title="All was well") if root.proven_at else Row("Proven", "never"),
        Row("Looked at", at=root.looked_at) if root.looked_at else Row("Looked at", "never"),
        Row("Approved", at=root.approved_at) if root.approved_at else Row("Approved", "not yet"),
        Row("File system", root.filesystem or DASH),
        Row("Mounted at", root.mount_point or DASH),
        Row("Device", root.device_id or DASH, "Major and minor number, as approved or seen since"),
        Row("File system id", root.fsid or DASH, "As approved"),
    ]
    if root.approve and root.state != StorageRoot.State.RETIRED:
        rows.insert(0, Row("Approval", "waits for its agent"))
    return rows


def _capacity(root: StorageRoot, found: Capacity) -> list[Row]:
    measured = room.measured_at(root)
    left = found.room_bytes if found.free_bytes is not None else None  # a ceiling alone says nothing of the disk
    rows = [
        Row("Free", f"{size(found.free_bytes)} of {size(found.total_bytes)}" if found.total_bytes else DASH),
        Row("Reserve", reserve(root), "To be left free"),
        Row("Reserved by jobs", size(found.reserved_bytes), "Still to be written to this file system"),
        Row("Artifacts here", size(found.artifact_bytes)),
        Row("Half done here", size(found.partial_bytes), "Of jobs that wait, failed or were cancelled"),
        Row("Ceiling", "none" if found.ceiling_bytes is None else size(found.ceiling_bytes)),
        Row("Room for more", size(left), "What one more job may bring"),
        Row("Files free", DASH if root.inodes_free is None else count(root.inodes_free)),
    ]
    return [*rows, Row("Measured", at=measured) if measured else Row("Measured", "never")]


def _registered(root: StorageRoot) -> list[Row]:
    return [
        Row("Host path", root.host_path),
        Row("Container path", root.container_path),
        Row("Purpose", root.purpose),
        Row("Registered", f"by {root.created_by}", at=root.created_at),
        Row("Root id", str(root.pk)),
    ]
