"""What the pages of storage roots, jobs and artifacts share: how one is found and shown, and the small links to it."""

from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts.models import Artifact, Job, StorageRoot
from nodes.admin.access import ReadOnlyAdmin, clock, may_act
from nodes.audit import events
from nodes.models import Node

HISTORY_SHOWN = 50


class SubjectAdmin(ReadOnlyAdmin):
    """A list whose rows lead to a page of their own; nothing is written on either."""

    page: ClassVar[str] = ""
    named: ClassVar[str] = ""  # the list's title
    empty: ClassVar[str] = ""
    list_display_links = None
    change_list_template = "modelforge/live_list.html"

    def find(self, key: UUID) -> Any:
        """The subject with all that its page shows, or None."""
        raise NotImplementedError

    def context(self, subject: Any, request: HttpRequest, now: datetime) -> dict[str, Any]:
        """What the page's template needs."""
        raise NotImplementedError

    def add(self, request: HttpRequest) -> tuple[str, str] | None:
        """The verb that makes a new one, and its address; None where there is none."""
        return None

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        context = {
            "title": self.named,
            "trail": [(self.named, "")],
            "add": self.add(request) if may_act(request) else None,
            "empty": self.empty,
        }
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The subject's page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        now = clock()
        subject = self.find(key_of(object_id))
        if subject is None:
            raise Http404("There is nothing of that id.")
        request.current_app = self.admin_site.name
        listed = list(events().filter(node_id=subject.node_id, about_id=str(subject.pk))[: HISTORY_SHOWN + 1])
        context = {
            "title": str(subject),
            "trail": [(self.named, reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))],
            "now": now,
            "may_act": may_act(request),
            "events": listed[:HISTORY_SHOWN],
            "more_events": len(listed) > HISTORY_SHOWN,
            "audit_url": f"{reverse('admin:nodes_auditevent_changelist')}?{urlencode({'q': str(subject.pk)})}",
            **self.context(subject, request, now),
        }
        context["trail"].append((context["title"], ""))
        return TemplateResponse(request, self.page, self.admin_site.each_context(request) | context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Django's own log says nothing of these; their history is on their page and in the audit list."""
        raise Http404("The history is on the page and in the audit list.")


def key_of(text: str) -> UUID:
    """The id in an address.

    Raises:
        Http404: it is none.
    """
    try:
        return UUID(text)
    except ValueError:
        raise Http404("There is nothing of that id.") from None


def page_of(subject: Model) -> str:
    """Where a root, a job, an artifact or a node has its page."""
    return reverse(f"admin:{subject._meta.app_label}_{subject._meta.model_name}_change", args=[subject.pk])


def list_of(kind: type[Model], **filters: object) -> str:
    """A list under filters."""
    link = reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_changelist")
    return f"{link}?{urlencode(filters)}" if filters else link


def link(subject: Node | StorageRoot | Job | Artifact, text: str = "") -> SafeString:
    """A link to its page, clipped, with the whole in the tooltip."""
    said = text or str(subject)
    return format_html('<a class="mf-link mf-clip" href="{0}" title="{1}">{1}</a>', page_of(subject), said)


def name(subject: StorageRoot | Job | Artifact, first: str, second: str) -> SafeString:
    """A list's first cell: a link of two lines."""
    return format_html(
        '<a class="mf-name" href="{0}"><b class="mf-clip" title="{1}">{1}</b>'
        '<span class="mf-clip mf-subtle" title="{2}">{2}</span></a>',
        page_of(subject),
        first,
        second,
    )


def place(subject: Job | Artifact) -> SafeString:
    """Which node, and where on it."""
    return format_html(
        '{}<span class="mf-line mf-clip mf-subtle" title="{}">{}</span>',
        link(subject.node),
        subject.root.container_path,
        subject.root.container_path,
    )
