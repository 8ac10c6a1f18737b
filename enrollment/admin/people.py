"""The people who log in, under Django's own user pages; whoever is added or changed is told in the history."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm
from unfold.widgets import UnfoldAdminPasswordWidget

from enrollment import people
from nodes.admin.access import clock, may_act, may_read
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import choice, text
from nodes.audit import Subject, record
from nodes.callers import Caller, Role, person
from nodes.event_types import EventType

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
class PersonAdmin(UserAdmin, ModelAdmin):  # type: ignore[misc]
    """Operators keep accounts; only a superuser touches superusers and single permissions. Nobody is deleted."""

    form = UserChangeForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "first_name", "last_name", "is_active", "is_superuser", "last_login"]
    list_filter = ["is_active", "groups"]
    actions = None
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("May log in and act as", {"fields": ("is_active", "is_staff", "groups")}),
        ("Superusers only", {"fields": ("is_superuser", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ["last_login", "date_joined"]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Without what only superusers set."""
        shown = super().get_fieldsets(request, obj)
        return shown if request.user.is_superuser else [part for part in shown if part[0] != "Superusers only"]

    def get_urls(self) -> list[URLPattern]:
        """Adding a person is an act with a page of its own."""
        add = self.admin_site.admin_view(AddPerson.as_view(model_admin=self))
        return [path("add/", add, name="auth_user_add"), *super().get_urls()]

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
