"""The list of invitations, and the page that takes one back."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import RadioFilter

from enrollment import admission
from enrollment.admin.enroll import EnrollNode
from enrollment.invitations import TokenState, in_state, state_of
from enrollment.models import EnrollmentToken
from nodes.admin.access import ReadOnlyAdmin, clock, may_act
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import OptionalReasonForm
from nodes.callers import Caller
from nodes.markup import badge, when
from nodes.wording import DASH

TONES = {
    TokenState.OPEN: "success",
    TokenState.USED: "info",
    TokenState.EXPIRED: "neutral",
    TokenState.REVOKED: "neutral",
}


class RevokeToken(ActPage):
    """Take an invitation back."""

    title = "Revoke token"
    button = "Revoke"
    icon = "block"
    danger = True
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = ["The token stops working at once. A server that tries it is told that it was revoked."]

    def find(self, key: Any) -> EnrollmentToken:
        """The token."""
        token = EnrollmentToken.objects.filter(pk=key).first() if isinstance(key, UUID) else None
        if token is None:
            raise Http404("There is no such token.")
        return token

    def back(self, subject: EnrollmentToken) -> str:
        """The list."""
        return reverse("admin:enrollment_enrollmenttoken_changelist")

    def trail(self, subject: EnrollmentToken) -> Trail:
        """Over the list."""
        return [("Enrollment", self.back(subject)), (str(subject), "")]

    def act(self, subject: EnrollmentToken, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Revoke it."""
        admission.revoke(subject, by=by, now=now, reason=form.cleaned_data["reason"])
        return self.done(subject, f"The token of {subject} is revoked.")


class StateFilter(RadioFilter):  # type: ignore[misc]
    """By where an invitation stands now."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The four states."""
        return [(state.value, state.value.capitalize()) for state in TokenState]

    def queryset(self, request: HttpRequest, queryset: QuerySet[EnrollmentToken]) -> QuerySet[EnrollmentToken]:
        """The tokens in it."""
        chosen = self.value()
        return queryset.filter(in_state(TokenState(chosen), clock())) if chosen in set(TokenState) else queryset


@admin.register(EnrollmentToken)
class EnrollmentTokenAdmin(ReadOnlyAdmin):
    """Every invitation with where it stands; never a secret."""

    list_display = ["name", "state", "recognised_by", "valid_until", "used_by", "made", "verbs"]
    list_display_links = None
    list_filter = [StateFilter]
    search_fields = ["display_name", "role", "last_four", "created_by", "node__display_name"]
    search_help_text = "Name, role, last four, creator"
    ordering = ["-created_at"]
    change_list_template = "modelforge/list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[EnrollmentToken]:
        """With the nodes that used them."""
        queryset: QuerySet[EnrollmentToken] = super().get_queryset(request).select_related("node")
        return queryset.defer("node__facts")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        add = ("Enroll node", reverse("admin:enrollment_enrollmenttoken_add"))
        context = {
            "title": "Enrollment tokens",
            "trail": [("Enrollment tokens", "")],
            "add": add if may_act(request) else None,
            "empty": "No node was invited yet.",
        }
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """The verbs for operators only."""
        return [name for name in self.list_display if name != "verbs" or may_act(request)]

    def get_urls(self) -> list[URLPattern]:
        """Invite and revoke, and no generic form."""
        wrap = self.admin_site.admin_view
        return [
            path("add/", wrap(EnrollNode.as_view(model_admin=self)), name="enrollment_enrollmenttoken_add"),
            path(
                "<uuid:key>/revoke/",
                wrap(RevokeToken.as_view(model_admin=self)),
                name="enrollment_enrollmenttoken_revoke",
            ),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The list says all there is."""
        return HttpResponseRedirect(reverse("admin:enrollment_enrollmenttoken_changelist"))

    @admin.display(description="For", ordering="display_name")
    def name(self, token: EnrollmentToken) -> SafeString:
        """Whom it invites."""
        return format_html(
            '<span class="mf-name"><b class="mf-clip" title="{0}">{0}</b>'
            '<span class="mf-clip mf-subtle">{1}</span></span>',
            token.display_name or "any node",
            token.role,
        )

    @admin.display(description="State")
    def state(self, token: EnrollmentToken) -> SafeString:
        """Open, used, expired or revoked."""
        state = state_of(token, clock())
        return badge(state.value, TONES[state])

    @admin.display(description="Token", ordering="last_four")
    def recognised_by(self, token: EnrollmentToken) -> SafeString:
        """The last four characters of its secret part."""
        return format_html('<code class="mf-mono" title="Handle {}">…{}</code>', token.handle, token.last_four)

    @admin.display(description="Valid until", ordering="expires_at")
    def valid_until(self, token: EnrollmentToken) -> SafeString | str:
        """When it ends by itself."""
        return when(token.expires_at, clock())

    @admin.display(description="Used by")
    def used_by(self, token: EnrollmentToken) -> SafeString | str:
        """The node that it let in."""
        if token.node is None or token.used_at is None:
            return DASH
        return format_html(
            '<a class="mf-link mf-clip" href="{}" title="{}">{}</a> {}',
            reverse("admin:nodes_node_change", args=[token.node.pk]),
            token.node.display_name,
            token.node.display_name,
            when(token.used_at, clock()),
        )

    @admin.display(description="Made", ordering="created_at")
    def made(self, token: EnrollmentToken) -> SafeString:
        """When and by whom."""
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle mf-clip">{}</span>',
            when(token.created_at, clock()),
            token.created_by,
        )

    @admin.display(description="")
    def verbs(self, token: EnrollmentToken) -> SafeString | str:
        """Revoke an open one."""
        if state_of(token, clock()) is not TokenState.OPEN:
            return ""
        to = reverse("admin:enrollment_enrollmenttoken_revoke", args=[token.pk])
        return format_html('<a class="mf-button mf-small" href="{}">Revoke</a>', to)
