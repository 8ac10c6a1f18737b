"""API keys for scripts: made with a role and an end, shown once, listed without their secrets, revoked."""

from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesRadioFilter

from enrollment import keys
from enrollment.models import ApiKey
from nodes.admin.access import ReadOnlyAdmin, clock, may_act
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.form_once import Made
from nodes.admin.forms import choice, text
from nodes.callers import Caller
from nodes.markup import badge, when

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "No end")]


class KeyForm(forms.Form):
    """A key's name, role and end."""

    name = text("Name", most=255, required=True, placeholder="nightly-report", help_text="Who or what uses it.")
    role = choice(
        "Role",
        [(ApiKey.Role.AUDITOR.value, "Auditor: reads"), (ApiKey.Role.OPERATOR.value, "Operator: reads and acts")],
        initial=ApiKey.Role.AUDITOR.value,
    )
    days = choice("Valid for", LIFETIMES, initial="90")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["days"].required = False


class CreateKey(ActPage):
    """Make a key."""

    title = "Create API key"
    button = "Create key"
    icon = "vpn_key"
    makes_secret = True
    form_class: ClassVar[type[forms.Form]] = KeyForm
    effects = ["The key is shown once on the next page. It is sent as X-ModelForge-Admin-Token."]

    def find(self, key: Any) -> None:
        """There is no subject yet."""
        return

    def back(self, subject: Any) -> str:
        """The list."""
        return reverse("admin:enrollment_apikey_changelist")

    def trail(self, subject: Any) -> Trail:
        """Over the list."""
        return [("API keys", self.back(subject))]

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Make it and show it once."""
        said = form.cleaned_data
        ends = now + timedelta(days=int(said["days"])) if said["days"] else None
        key, secret = keys.create(said["name"], ApiKey.Role(said["role"]), ends, by=by, now=now)
        context = {
            "title": "API key",
            "trail": [*self.trail(subject), (key.name, "")],
            "key": key,
            "secret": secret,
            "now": now,
            "back": self.back(subject),
        }
        made = Made(str(key.pk), f"The key {key.name}", f"{self.back(subject)}?{urlencode({'q': key.last_four})}")
        return self.secret_once("modelforge/key_created.html", context, made=made)


class RevokeKey(ActPage):
    """End a key."""

    title = "Revoke API key"
    button = "Revoke now"
    icon = "block"
    danger = True
    effects = ["The key stops working at once. Its name is free again; its history stays."]

    def find(self, key: Any) -> ApiKey:
        """The key."""
        found = ApiKey.objects.filter(pk=key).first() if isinstance(key, UUID) else None
        if found is None:
            raise Http404("There is no such key.")
        return found

    def back(self, subject: ApiKey) -> str:
        """The list."""
        return reverse("admin:enrollment_apikey_changelist")

    def trail(self, subject: ApiKey) -> Trail:
        """Over the list."""
        return [("API keys", self.back(subject)), (subject.name, "")]

    def act(self, subject: ApiKey, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Revoke it."""
        keys.revoke(subject, by=by, now=now)
        return self.done(subject, f"The key {subject.name} is revoked.")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Every key, without its secret."""

    list_display = ["named", "state", "role_shown", "recognised_by", "ends", "last_used", "made", "verbs"]
    list_display_links = None
    list_filter = [("role", ChoicesRadioFilter)]
    search_fields = ["name", "last_four", "created_by"]
    search_help_text = "Name, last four, creator"
    ordering = ["revoked_at", "name"]
    change_list_template = "modelforge/list.html"
    counted = "API key"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        add = ("Create API key", reverse("admin:enrollment_apikey_add"))
        context = {
            "title": "API keys",
            "trail": [("API keys", "")],
            "add": add if may_act(request) else None,
            "empty": "No API key yet. Scripts may use one instead of the admin token.",
        }
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """The verbs for operators only."""
        return [name for name in self.list_display if name != "verbs" or may_act(request)]

    def get_urls(self) -> list[URLPattern]:
        """Create and revoke, and no generic form."""
        wrap = self.admin_site.admin_view
        return [
            path("add/", wrap(CreateKey.as_view(model_admin=self)), name="enrollment_apikey_add"),
            path("<uuid:key>/revoke/", wrap(RevokeKey.as_view(model_admin=self)), name="enrollment_apikey_revoke"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The list says all there is."""
        return HttpResponseRedirect(reverse("admin:enrollment_apikey_changelist"))

    @admin.display(description="Name", ordering="name")
    def named(self, key: ApiKey) -> SafeString:
        """Its name."""
        return format_html('<b class="mf-clip mf-strong" title="{0}">{0}</b>', key.name)

    @admin.display(description="State")
    def state(self, key: ApiKey) -> SafeString:
        """Live, expired or revoked."""
        if key.revoked_at is not None:
            return badge("revoked", "neutral")
        if key.expires_at is not None and key.expires_at <= clock():
            return badge("expired", "neutral")
        return badge("live", "success")

    @admin.display(description="Role", ordering="role")
    def role_shown(self, key: ApiKey) -> str:
        """What it may do."""
        return key.role

    @admin.display(description="Key", ordering="last_four")
    def recognised_by(self, key: ApiKey) -> SafeString:
        """The last four characters of its secret part."""
        return format_html('<code class="mf-mono" title="Handle {}">…{}</code>', key.handle, key.last_four)

    @admin.display(description="Ends", ordering="expires_at")
    def ends(self, key: ApiKey) -> SafeString | str:
        """When it ends by itself."""
        return when(key.expires_at, clock()) if key.expires_at else "no end"

    @admin.display(description="Last used", ordering="last_used_at")
    def last_used(self, key: ApiKey) -> SafeString | str:
        """To the minute."""
        return when(key.last_used_at, clock()) if key.last_used_at else "never"

    @admin.display(description="Made", ordering="created_at")
    def made(self, key: ApiKey) -> SafeString:
        """When and by whom."""
        return format_html(
            '<span class="mf-line">{}</span><span class="mf-line mf-subtle mf-clip">{}</span>',
            when(key.created_at, clock()),
            key.created_by,
        )

    @admin.display(description="")
    def verbs(self, key: ApiKey) -> SafeString | str:
        """Revoke a live one."""
        if key.revoked_at is not None:
            return ""
        to = reverse("admin:enrollment_apikey_revoke", args=[key.pk])
        return format_html('<a class="mf-button mf-small" href="{}">Revoke</a>', to)
