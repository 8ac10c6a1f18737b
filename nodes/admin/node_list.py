"""The list "Compute nodes", and the way from it to each node's page."""

from collections import Counter
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from nodes.admin import node_page, verbs
from nodes.admin.access import ReadOnlyAdmin, clock, may_act
from nodes.admin.filters import FILTERS
from nodes.admin.flags import flags_of, heart_of, liveness_of
from nodes.admin.fleet import fleet
from nodes.liveness import Liveness
from nodes.markup import badge, chip, when
from nodes.models import Accelerator, Node
from nodes.wording import DASH, short, size

TONES = {Liveness.ONLINE: "success", Liveness.STALE: "warning", Liveness.OFFLINE: "danger"}


@admin.register(Node)
class NodeAdmin(ReadOnlyAdmin):
    """Every node with how it is; nothing is written here."""

    list_display = ["name", "status", "heard", "accelerators_shown", "vram", "agent", "eligibility", "flags"]
    list_display_links = None
    list_filter = FILTERS
    search_fields = ["display_name", "hostname", "role", "address", "agent_version", "accelerators__uuid"]
    search_help_text = "Name, host, role, address, GPU UUID"
    ordering = ["display_name", "id"]
    change_list_template = "modelforge/node_list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        """The fleet as of now, with the accelerators of one page's nodes."""
        devices = Accelerator.objects.filter(kind="gpu", missing_since=None).only("node_id", "model", "key", "index")
        return fleet(clock()).prefetch_related(Prefetch("accelerators", devices, to_attr="gpus"))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that knows the instant it was read at."""
        return super().get_changelist(request, **kwargs)  # type: ignore[no-any-return]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        context = {
            "title": "Compute nodes",
            "trail": [("Compute nodes", "")],
            "may_act": may_act(request),
            "fleet_is_empty": not Node.objects.exists(),
            "enroll_url": reverse("admin:enrollment_enrollmenttoken_add"),
        }
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def get_urls(self) -> list[URLPattern]:
        """The verbs of a node come before the catch-all of its page."""
        return [*verbs.urls(self), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The node's page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        now = clock()
        node = node_page.find(object_id, now)
        if node is None:
            raise Http404("There is no such node.")
        request.current_app = self.admin_site.name
        context = self.admin_site.each_context(request) | node_page.context(node, request, now)
        return TemplateResponse(request, "modelforge/node.html", context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Django's own log says nothing about nodes; their history is the audit list."""
        raise Http404("A node's history is on its page and in the audit list.")

    @admin.display(description="Node", ordering="display_name")
    def name(self, node: Node) -> SafeString:
        """Name and host, clipped, with the whole in the tooltip."""
        return format_html(
            '<a class="mf-name" href="{}" title="{}"><b class="mf-clip">{}</b>'
            '<span class="mf-clip mf-subtle" title="{}">{}{}</span></a>',
            reverse("admin:nodes_node_change", args=[node.pk]),
            node.display_name,
            node.display_name,
            node.hostname,
            node.hostname,
            f" · {node.role}" if node.role else "",
        )

    @admin.display(description="Status", ordering="rank")
    def status(self, node: Node) -> SafeString:
        """Liveness of now; of a retired node nothing is awaited."""
        if node.retired_at is not None:
            return badge("retired", "neutral")
        heart = heart_of(node)
        if heart is not None and heart.stopped_at is not None:
            return badge("stopped", "neutral", "The agent said goodbye: a planned stop.")
        state = liveness_of(node, clock())
        return badge(state.value, TONES[state])

    @admin.display(description="Heartbeat", ordering="heard_at")
    def heard(self, node: Node) -> SafeString | str:
        """The age of the last beat."""
        heart = heart_of(node)
        return when(heart.last_heard_at, clock()) if heart and heart.last_heard_at else "never"

    @admin.display(description="GPUs")
    def accelerators_shown(self, node: Node) -> SafeString | str:
        """Count times model; MIG instances are on the node's page."""
        models = Counter(device.model or "GPU" for device in node.gpus)  # type: ignore[attr-defined]
        if not models:
            return DASH
        lines = [(f"{count} × {short(model)}", model) for model, count in models.most_common(2)]
        if len(models) > 2:
            lines.append((f"and {len(models) - 2} more models", ", ".join(models)))
        return format_html_join("", '<span class="mf-clip mf-line" title="{1}">{0}</span>', lines)

    @admin.display(description="VRAM", ordering="vram_bytes")
    def vram(self, node: Node) -> str:
        """Of all GPUs that tell theirs."""
        total: int = node.vram_bytes  # type: ignore[attr-defined]
        return size(total) if total else DASH

    @admin.display(description="Agent", ordering="agent_version")
    def agent(self, node: Node) -> SafeString | str:
        """Version and protocol."""
        if not node.agent_version:
            return DASH
        protocol = f"protocol {node.protocol_version}" if node.protocol_version is not None else ""
        return format_html(
            '<span class="mf-line mf-clip" title="{0}">{0}</span><span class="mf-line mf-subtle">{1}</span>',
            node.agent_version,
            protocol,
        )

    @admin.display(description="Eligible")
    def eligibility(self, node: Node) -> SafeString | str:
        """Production, lab, benchmark."""
        if node.retired_at is not None:
            return DASH
        return format_html('<span class="mf-chips">{}</span>', eligibility_chips(node))

    @admin.display(description="Flags")
    def flags(self, node: Node) -> SafeString | str:
        """What is odd, beside what the status already says."""
        chips = [
            (chip(flag.chip, flag.tone, f"{flag.title}: {flag.meaning}"),)
            for flag in flags_of(node, clock())
            if flag.key not in {"stale", "offline", "stopped", "retired"}
        ]
        return format_html('<span class="mf-chips">{}</span>', format_html_join("", "{}", chips)) if chips else ""


def eligibility_chips(node: Node) -> SafeString:
    """P, L and B, each lit or dim."""
    purposes = [
        ("P", "production", node.production_eligible),
        ("L", "lab", node.lab_eligible),
        ("B", "benchmark", node.benchmark_eligible),
    ]
    return format_html_join(
        "",
        '<span class="mf-letter{}" title="{}">{}<span class="mf-hidden"> {}</span></span>',
        (
            (
                " mf-on" if lit else "",
                f"{'Eligible' if lit else 'Not eligible'} for {name}",
                letter,
                "yes" if lit else "no",
            )
            for letter, name, lit in purposes
        ),
    )
