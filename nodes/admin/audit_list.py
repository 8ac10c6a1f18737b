"""The audit list: what happened, newest first, filtered and searched, and never changed."""

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import DropdownFilter, RadioFilter, TextFilter

from nodes.admin.access import ReadOnlyAdmin, clock
from nodes.admin.filters import NodeTextFilter
from nodes.admin.parameters import faults
from nodes.event_types import EventType
from nodes.markup import when
from nodes.models import AuditEvent
from nodes.wording import event_label, event_summary

EXPORT = "/api/v1/audit-events"


class TypeFilter(DropdownFilter):  # type: ignore[misc]
    """By what happened."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Every type."""
        return [(value, str(label)) for value, label in EventType.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """The events of it."""
        chosen = self.value()
        return queryset.filter(type=chosen) if chosen in EventType.values else queryset


class ActorKindFilter(RadioFilter):  # type: ignore[misc]
    """By what kind of caller did it."""

    title = "actor"
    parameter_name = "actor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The kinds of ``nodes.callers.Caller``."""
        return [
            ("person", "Person"),
            ("admin_token", "Admin token"),
            ("api_key", "API key"),
            ("node", "Node"),
            ("system", "Control plane"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """The events of it."""
        chosen = self.value()
        return queryset.filter(actor_kind=chosen) if chosen else queryset


class NodeFilter(NodeTextFilter):
    """By node: its id, or part of the name that it had."""

    def named(self, queryset: QuerySet[AuditEvent], part: str) -> QuerySet[AuditEvent]:
        """The events about nodes of such a name."""
        return queryset.filter(about_kind="node", about_label__icontains=part)


class DayFilter(TextFilter):  # type: ignore[misc]
    """By the UTC day on which it happened, written year-month-day; ``since`` and ``until`` below."""

    lookup = ""
    days = 0

    @classmethod
    def instant(cls, day: str) -> datetime | None:
        """The midnight that a written day stands for; None where it is no date."""
        try:
            return datetime.combine(date.fromisoformat(day.strip()), time(), UTC) + timedelta(days=cls.days)
        except (ValueError, OverflowError):
            return None

    @classmethod
    def fault(cls, value: str) -> str:
        """What is wrong with a written day."""
        return f"“{value[:80]}” is no date; write YYYY-MM-DD." if cls.instant(value) is None else ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        """The events from it on, or up to its end; the list shows nothing for what is no date."""
        instant = self.instant(str(self.value() or ""))
        return queryset if instant is None else queryset.filter(**{self.lookup: instant})


class SinceFilter(DayFilter):
    """From this day on."""

    title = "first day (YYYY-MM-DD)"
    parameter_name = "since"
    lookup = "at__gte"


class UntilFilter(DayFilter):
    """Up to the end of this day."""

    title = "last day (YYYY-MM-DD)"
    parameter_name = "until"
    lookup = "at__lt"
    days = 1


def exported(request: HttpRequest) -> dict[str, str]:
    """The list's filters as REST takes them, for the exports; a node by its id only."""
    wanted = {key: str(request.GET[key]).strip() for key in ("type", "actor", "q") if request.GET.get(key)}
    try:
        wanted["node"] = str(UUID(str(request.GET.get("node", "")).strip()))
    except ValueError:
        wanted.pop("node", None)
    for end in (SinceFilter, UntilFilter):
        if (instant := end.instant(str(request.GET.get(end.parameter_name, "")))) is not None:
            wanted[end.parameter_name] = instant.isoformat()
    return wanted


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The history; not even a superuser adds, changes or deletes."""

    list_display = ["what", "about", "who", "at_shown", "number"]
    list_display_links = None
    list_filter = [TypeFilter, ActorKindFilter, NodeFilter, SinceFilter, UntilFilter]
    search_fields = ["about_label", "actor_label", "type", "address", "request_id", "about_id"]
    search_help_text = "About, actor, type, address, request id"
    ordering = ["-position"]
    change_list_template = "modelforge/audit_list.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to the whole as CSV and NDJSON."""
        context = {
            "title": "Audit",
            "trail": [("Audit", "")],
            "exports": [
                (form.upper(), f"{EXPORT}?{urlencode({**exported(request), 'format': form})}")
                for form in ("csv", "ndjson")
                if not faults(self, request)  # an export would be of everything
            ],
        }
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """One event with all that it says."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        around = Q(position=object_id) if object_id.isdigit() and len(object_id) < 19 else Q(pk__in=[])
        event = AuditEvent.objects.filter(around).first()
        if event is None:
            raise Http404("There is no such event.")
        request.current_app = self.admin_site.name
        context = {
            "title": f"Event {event.position}",
            "trail": [("Audit", reverse("admin:nodes_auditevent_changelist")), (f"Event {event.position}", "")],
            "event": event,
            "now": clock(),
            "details": json.dumps(event.details, indent=2, ensure_ascii=False, sort_keys=True),
            "neighbours": dict(
                AuditEvent.objects.filter(position__in=[event.position - 1, event.position + 1]).values_list(
                    "position", "hash"
                )
            ),
            "before": event.position - 1,
            "after": event.position + 1,
        }
        return TemplateResponse(request, "modelforge/event.html", self.admin_site.each_context(request) | context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """The history has no history."""
        raise Http404

    @admin.display(description="What", ordering="type")
    def what(self, event: AuditEvent) -> SafeString:
        """The type in words, and what it says in short."""
        said = event_summary(event.details)
        return format_html(
            '<a class="mf-name" href="{}"><b class="mf-clip">{}</b>'
            '<span class="mf-clip mf-subtle" title="{}">{}</span></a>',
            reverse("admin:nodes_auditevent_change", args=[event.position]),
            event_label(event.type),
            said,
            said or event.type,
        )

    @admin.display(description="About", ordering="about_label")
    def about(self, event: AuditEvent) -> SafeString:
        """Whom it concerns, by the name of then; a node's leads to its page."""
        if event.node_id is None:
            return format_html('<span class="mf-clip" title="{0}">{0}</span>', event.about_label)
        return format_html(
            '<a class="mf-link mf-clip" href="{}" title="{}">{}</a>',
            reverse("admin:nodes_node_change", args=[event.node_id]),
            event.about_label,
            event.about_label,
        )

    @admin.display(description="Actor", ordering="actor_label")
    def who(self, event: AuditEvent) -> SafeString:
        """Who did it, and from where."""
        return format_html(
            '<span class="mf-line mf-clip" title="{0}">{0}</span><span class="mf-line mf-clip mf-subtle">{1}{2}</span>',
            event.actor_label,
            event.actor_kind.replace("_", " "),
            f" · {event.address}" if event.address else "",
        )

    @admin.display(description="When", ordering="at")
    def at_shown(self, event: AuditEvent) -> SafeString:
        """When it happened."""
        return when(event.at, clock())

    @admin.display(description="No.", ordering="position")
    def number(self, event: AuditEvent) -> str:
        """Its place in the chain."""
        return str(event.position)
