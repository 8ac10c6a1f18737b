"""The list "Artifacts", each artifact's page, and its verbs: verify, remove."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts import listed, orders, standing
from artifacts.admin import tables
from artifacts.admin.filters import ArtifactStateFilter, NodeFilter, RootFilter
from artifacts.admin.flags import of_artifact
from artifacts.admin.subjects import SubjectAdmin, link, list_of, name, page_of, place
from artifacts.models import Artifact, Job
from artifacts.serializers_artifacts import below
from nodes.admin.access import clock, may_act
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import OptionalReasonForm, ReasonForm
from nodes.admin.rows import Button, Row
from nodes.callers import Caller
from nodes.markup import when
from nodes.wording import size

JOBS_SHOWN = 10
DAMAGED_SHOWN = 100


class ArtifactActPage(ActPage):
    """An order about one artifact; it leads to the job."""

    def find(self, key: Any) -> Artifact:
        """The artifact."""
        artifact = listed.artifacts().filter(pk=key).first() if isinstance(key, UUID) else None
        if artifact is None:
            raise Http404("There is no such artifact.")
        return artifact

    def back(self, subject: Artifact) -> str:
        """The artifact's page."""
        return page_of(subject)

    def trail(self, subject: Artifact) -> Trail:
        """Over the list and the artifact's page."""
        return [("Artifacts", list_of(Artifact)), (str(subject), self.back(subject))]

    def ordered(self, job: Job, *, new: bool) -> HttpResponse:
        """To the job that does it."""
        messages.success(self.request, "It is ordered." if new else "It is under way already: this is that job.")
        return HttpResponseRedirect(page_of(job))


class Verify(ArtifactActPage):
    """Read every byte again."""

    title = "Verify artifact"
    button = "Verify"
    icon = "fact_check"
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = ["A job of its node reads every byte again and compares it with the manifest. Nothing is changed."]

    def act(self, subject: Artifact, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Order it."""
        job, new = orders.verify(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.ordered(job, new=new)


class Remove(ArtifactActPage):
    """Delete it from the server."""

    title = "Remove artifact"
    button = "Remove"
    icon = "delete"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "A job of its node unpublishes the folder by one rename, then deletes it. Whoever reads it loses it.",
        "Only this folder goes, nothing outside it. Other artifacts of the same repository stay.",
    ]

    def act(self, subject: Artifact, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Order it."""
        job, new = orders.remove(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.ordered(job, new=new)


PAGES: dict[str, type[ArtifactActPage]] = {"verify": Verify, "remove": Remove}


@admin.register(Artifact)
class ArtifactAdmin(SubjectAdmin):
    """What lies where, whole and verified."""

    page = "modelforge/artifact.html"
    named = "Artifacts"
    empty = "Nothing was published yet. Order a model, and it is listed here once every byte of it is verified."
    list_display = ["repository", "state_shown", "where", "size_shown", "published", "verified"]
    list_filter = [ArtifactStateFilter, NodeFilter, RootFilter]
    search_fields = ["repo_id", "revision", "commit", "node__display_name", "snapshot"]
    search_help_text = "Repository, revision, commit, node, folder"
    ordering = ["repo_id", "-published_at", "id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Artifact]:
        """With nodes and roots, in one query."""
        return listed.artifacts()

    def add(self, request: HttpRequest) -> tuple[str, str]:
        """Order one."""
        return "Order a model", reverse("admin:artifacts_job_add")

    def get_urls(self) -> list[URLPattern]:
        """The verbs come before the catch-all of the page."""
        wrap = self.admin_site.admin_view
        verbs = [
            path(f"<uuid:key>/{verb}/", wrap(page.as_view(model_admin=self)), name=f"artifacts_artifact_{verb}")
            for verb, page in PAGES.items()
        ]
        return [*verbs, *super().get_urls()]

    def find(self, key: UUID) -> Artifact | None:
        """The artifact with its node and root."""
        return listed.artifacts().filter(pk=key).first()

    def context(self, subject: Artifact, request: HttpRequest, now: datetime) -> dict[str, Any]:
        """Where it lies, what is known of its bytes, the jobs about it."""
        jobs = list(listed.jobs().filter(artifact=subject).order_by("-created_at")[: JOBS_SHOWN + 1])
        return {
            "artifact": subject,
            "state": tables.artifact_state(subject),
            "gone": standing.of(subject) == standing.GONE,
            "node_link": link(subject.node),
            "root_link": link(subject.root),
            "flags": list(of_artifact(subject, now)),
            "verbs": _verbs(subject) if may_act(request) else [],
            "path": below(subject.root.container_path, subject.snapshot),
            "host_path": below(subject.root.host_path, subject.snapshot),
            "snapshot_rows": _snapshot(subject),
            "bytes_rows": _bytes(subject),
            "damaged": subject.damaged[:DAMAGED_SHOWN],
            "jobs": tables.jobs(jobs[:JOBS_SHOWN], now, with_node=False),
            "more_jobs": len(jobs) > JOBS_SHOWN,
        }

    @admin.display(description="Artifact", ordering="repo_id")
    def repository(self, artifact: Artifact) -> SafeString:
        """Repository, commit, revision."""
        part = " · part of it" if artifact.selection else ""
        return name(artifact, artifact.repo_id, f"{artifact.commit[:12]} · {artifact.revision[:40]}{part}")

    @admin.display(description="State", ordering="state")
    def state_shown(self, artifact: Artifact) -> SafeString:
        """What is known of its bytes."""
        return tables.artifact_state(artifact)

    @admin.display(description="Node", ordering="node__display_name")
    def where(self, artifact: Artifact) -> SafeString:
        """Node and root."""
        return place(artifact)

    @admin.display(description="Size", ordering="bytes")
    def size_shown(self, artifact: Artifact) -> SafeString:
        """Bytes and files."""
        files = f"{artifact.files} file{'' if artifact.files == 1 else 's'}"
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle">{}</span>', size(artifact.bytes), files
        )

    @admin.display(description="Published", ordering="published_at")
    def published(self, artifact: Artifact) -> SafeString:
        """When it was published."""
        return when(artifact.published_at, clock())

    @admin.display(description="Verified", ordering="verified_at")
    def verified(self, artifact: Artifact) -> SafeString:
        """When every byte was read and right last."""
        return when(artifact.verified_at, clock())


def _verbs(artifact: Artifact) -> list[Button]:
    if standing.of(artifact) in {Artifact.State.REMOVED, standing.GONE}:
        return []
    icons = {"verify": ("Verify", "fact_check", False), "remove": ("Remove", "delete", True)}
    return [
        Button(label, reverse(f"admin:artifacts_artifact_{verb}", args=[artifact.pk]), icon, danger=danger)
        for verb, (label, icon, danger) in icons.items()
    ]


def _snapshot(artifact: Artifact) -> list[Row]:
    return [
        Row("Repository", artifact.repo_id),
        Row("Commit", artifact.commit),
        Row("Revision", artifact.revision, "As it was ordered last"),
        Row("Files chosen", "a selection, by the order's patterns" if artifact.selection else "all"),
        Row("Files", str(artifact.files)),
        Row("Size", f"{size(artifact.bytes)} ({artifact.bytes} bytes)"),
    ]


def _bytes(artifact: Artifact) -> list[Row]:
    rows = [
        Row("Published", at=artifact.published_at),
        Row("Verified", at=artifact.verified_at, title="Every byte was read and right"),
        Row("Manifest, SHA-256", artifact.manifest_sha256),
        Row("Artifact id", str(artifact.pk)),
    ]
    return [*rows, Row("Removed", at=artifact.removed_at)] if artifact.removed_at else rows
