"""The people who log in, under Django's own user pages; whoever is added or changed is told in the history."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminPasswordWidget

from enrollment import accounts, people
from enrollment.admin.person_page import PersonPage
from nodes.admin.access import clock, may_act, may_read
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import choice, text
from nodes.admin.parameters import CheckedList
from nodes.audit import Subject, record
from nodes.callers import Caller, Role, person
from nodes.event_types import EventType
from nodes.markup import badge, when

admin.site.unregister(User)
admin.site.unregister(Group)  # Operators and Auditors are fixed; who is in them is set on a person's page


class PersonForm(forms.Form):
    """A new account."""

    name = text("Name to log in with", most=150, required=True)
    role = choice(
        "Role",
        [(Role.AUDITOR.value, "Auditor: sees everything, changes nothing"), (Role.OPERATOR.value, "Operator: acts")],
        initial=Role.AUDITOR.value,
    )
    password = forms.CharField(
        strip=False,
        max_length=256,
        help_text="At least 12 characters, and no common one.",
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )


class AddPerson(ActPage):
    """Make an account."""

    title = "Add person"
    button = "Add person"
    icon = "person_add"
    form_class: ClassVar[type[forms.Form]] = PersonForm
    effects = ["The person may log in at once, and changes the password under their name at the lower left."]

    def find(self, key: Any) -> None:
        """There is no subject yet."""
        return

    def back(self, subject: Any) -> str:
        """The list."""
        return reverse("admin:auth_user_changelist")

    def trail(self, subject: Any) -> Trail:
        """Over the list."""
        return [("Users", self.back(subject))]

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Make it."""
        said = form.cleaned_data
        user = people.create(said["name"], said["password"], Role(said["role"]), by=by, now=now)
        return self.done(subject, f"{user.get_username()} may log in.")


@admin.register(User)
class PersonAdmin(CheckedList, UserAdmin, ModelAdmin):  # type: ignore[misc, type-arg]
    """Operators keep accounts; only a superuser touches superusers and single permissions. Nobody is deleted."""

    change_password_form = AdminPasswordChangeForm
    list_display_links = None
    list_display = ["named", "acts_as", "state", "last_seen"]
    change_list_template = "modelforge/list.html"
    show_full_result_count = False
    search_help_text = "Name or mail"
    list_filter = [("is_active", BooleanRadioFilter)]
    list_filter_submit = True
    show_facets = admin.ShowFacets.NEVER
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With everybody's groups."""
        queryset: QuerySet[User] = super().get_queryset(request)
        return queryset.prefetch_related("groups")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        add = ("Add person", reverse("admin:auth_user_add"))
        context = {"title": "Users", "trail": [("Users", "")], "add": add if may_act(request) else None}
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    @admin.display(description="Name", ordering="username")
    def named(self, user: User) -> SafeString:
        """The name to log in with, and the person's own."""
        return format_html(
            '<a class="mf-name" href="{}"><b class="mf-clip" title="{}">{}</b>'
            '<span class="mf-clip mf-subtle">{}</span></a>',
            reverse("admin:auth_user_change", args=[user.pk]),
            user.username,
            user.username,
            user.get_full_name(),
        )

    @admin.display(description="Acts as")
    def acts_as(self, user: User) -> str:
        """The role, as ``nodes.callers.person`` has it."""
        role = accounts.role_of(user)
        return "superuser" if user.is_superuser else role.value if role else "nothing"

    @admin.display(description="State", ordering="is_active")
    def state(self, user: User) -> SafeString:
        """Whether the person may log in."""
        return badge("active", "success") if user.is_active and user.is_staff else badge("inactive", "neutral")

    @admin.display(description="Last login", ordering="last_login")
    def last_seen(self, user: User) -> SafeString | str:
        """When the person last logged in."""
        return when(user.last_login, clock()) if user.last_login else "never"

    def get_urls(self) -> list[URLPattern]:
        """Adding and changing a person are acts with pages of their own."""
        add = self.admin_site.admin_view(AddPerson.as_view(model_admin=self))
        page = self.admin_site.admin_view(PersonPage.as_view(model_admin=self))
        return [
            path("add/", add, name="auth_user_add"),
            path("<int:key>/change/", page, name="auth_user_change"),
            *super().get_urls(),
        ]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Readers see who may log in."""
        return may_read(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Readers see who may log in."""
        return may_read(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Operators add."""
        return may_act(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Operators change, but no superuser unless they are one."""
        above = obj is not None and getattr(obj, "is_superuser", False) and not request.user.is_superuser
        return may_act(request) and not above

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever leaves is set inactive: the history names them."""
        return False

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """The new password and its line in the history, together."""
        with transaction.atomic():
            response: HttpResponse = super().user_change_password(request, id, form_url)
        return response

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> LogEntry:
        """Tell the history what was changed, by the fields' names and never by their values."""
        about = Subject("person", str(obj.pk), obj.get_username())
        groups = sorted(obj.groups.values_list("name", flat=True))
        fields = sorted({name for part in _parts(message) for name in part.get("changed", {}).get("fields", [])})
        told = {"fields": fields, "groups": groups, "active": obj.is_active, "superuser": obj.is_superuser}
        record(EventType.PERSON_CHANGED, by=person(request), about=about, at=clock(), **told)
        entry: LogEntry = super().log_change(request, obj, message)
        return entry


def _parts(message: Any) -> list[dict[str, Any]]:
    """Django's change message, where it is one of its lists; a plain text says only that something changed."""
    return message if isinstance(message, list) else []
