"""The list "Jobs", and the way from it to each job's page."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts import listed
from artifacts.admin import job_page, job_verbs, progress, tables
from artifacts.admin.filters import JobStateFilter, JobTypeFilter, NodeFilter, RootFilter
from artifacts.admin.flags import does
from artifacts.admin.subjects import SubjectAdmin, name, place
from artifacts.models import Job
from nodes.admin.access import clock, may_act
from nodes.markup import when
from nodes.wording import DASH


@admin.register(Job)
class JobAdmin(SubjectAdmin):
    """Every job with how far it is."""

    page = "modelforge/job.html"
    named = "Jobs"
    empty = "Nothing was ordered yet. Order a model into a verified storage root."
    list_display = ["repository", "state_shown", "where", "progress_shown", "pace", "attempts", "made"]
    list_filter = [JobStateFilter, JobTypeFilter, NodeFilter, RootFilter]
    search_fields = ["repo_id", "revision", "commit", "node__display_name", "failure_code", "created_by"]
    search_help_text = "Repository, revision, commit, node, failure"
    ordering = ["-created_at", "id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        """With nodes and roots, in one query."""
        return listed.jobs()

    def get_urls(self) -> list[URLPattern]:
        """The verbs come before the catch-all of the page."""
        return [*job_verbs.urls(self), *super().get_urls()]

    def add(self, request: HttpRequest) -> tuple[str, str]:
        """Order one."""
        return "Order a model", reverse("admin:artifacts_job_add")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, read again every few seconds."""
        return super().changelist_view(request, {"live": 5} | (extra_context or {}))

    def find(self, key: UUID) -> Job | None:
        """The job with its course."""
        return listed.jobs().defer(None).defer("node__facts", "node__labels").filter(pk=key).first()

    def context(self, subject: Job, request: HttpRequest, now: datetime) -> dict[str, Any]:
        """What the page shows."""
        return job_page.context(subject, now, acting=may_act(request))

    @admin.display(description="Job", ordering="repo_id")
    def repository(self, job: Job) -> SafeString:
        """Repository, type and revision."""
        return name(job, job.repo_id, f"{does(job)} · {job.revision}")

    @admin.display(description="State", ordering="state")
    def state_shown(self, job: Job) -> SafeString:
        """State, phase, failure."""
        return tables.job_state(job, clock())

    @admin.display(description="Node", ordering="node__display_name")
    def where(self, job: Job) -> SafeString:
        """Node and root."""
        return place(job)

    @admin.display(description="Progress")
    def progress_shown(self, job: Job) -> SafeString | str:
        """Bar, bytes, and when it was heard."""
        return progress.cell(job, clock())

    @admin.display(description="Rate")
    def pace(self, job: Job) -> SafeString:
        """Rate, and what is left."""
        now = clock()
        left = progress.left(job, now)
        said = f"{left} left" if left != DASH else ""
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle">{}</span>', progress.rate(job, now), said
        )

    @admin.display(description="Attempt", ordering="attempt")
    def attempts(self, job: Job) -> SafeString | str:
        """Attempts begun, and how many of the bound are spent."""
        spent = f"{job.spent} of {job.max_attempts} spent"
        return format_html('<span title="{}">{}</span>', spent, job.attempt) if job.attempt else DASH

    @admin.display(description="Ordered", ordering="created_at")
    def made(self, job: Job) -> SafeString:
        """When and by whom."""
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle mf-clip">{}</span>',
            when(job.created_at, clock()),
            job.created_by,
        )
