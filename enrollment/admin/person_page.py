"""A person's page: the name, the role, whether they may log in, and the way to a new password."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from enrollment import accounts
from nodes.admin.access import clock, may_act, may_read
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import choice, switch
from nodes.admin.rows import Row
from nodes.callers import Caller, Role

ROLES = [
    (Role.AUDITOR.value, "Auditor: sees everything, changes nothing"),
    (Role.OPERATOR.value, "Operator: acts"),
    ("", "None: sees nothing"),
]


class AccountForm(forms.Form):
    """A person's role, and whether they may log in."""

    role = choice("Role", ROLES, initial="")
    active = switch("Active", "Whoever leaves is set inactive: the history names them.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].required = False


class PersonPage(ActPage):
    """Read by readers; operators change it, but no superuser's unless they are one."""

    title = "Person"
    button = "Save"
    icon = "save"
    template = "modelforge/person.html"
    form_class: ClassVar[type[forms.Form]] = AccountForm

    def find(self, key: Any) -> User:
        """The person."""
        user = User.objects.filter(pk=key).first() if isinstance(key, int) and key < 2**31 else None
        if user is None:
            raise Http404("There is no such person.")
        return user

    def back(self, subject: User) -> str:
        """The list."""
        return reverse("admin:auth_user_changelist")

    def trail(self, subject: User) -> Trail:
        """Over the list."""
        return [("Users", self.back(subject))]

    def initial(self, subject: User) -> dict[str, Any]:
        """As it stands."""
        role = accounts.role_of(subject)
        return {"role": role.value if role else "", "active": subject.is_active and subject.is_staff}

    def more(self, subject: User) -> dict[str, Any]:
        """What is known of the person; never anything of the password."""
        role = accounts.role_of(subject)
        acts = "superuser" if subject.is_superuser else role.value if role else "nothing"
        last = Row("Last login", at=subject.last_login) if subject.last_login else Row("Last login", "never")
        active = "yes" if subject.is_active and subject.is_staff else "no"
        rows = [Row("Acts as", acts), Row("Active", active), last, Row("Added", at=subject.date_joined)]
        trail = [*self.trail(subject), (subject.get_username(), "")]
        return {"rows": rows, "may_change": self.may_change(subject), "trail": trail, "now": clock()}

    def may_change(self, subject: User) -> bool:
        """Operators, but only a superuser changes superusers."""
        return may_act(self.request) and (not subject.is_superuser or bool(self.request.user.is_superuser))

    def get(self, request: HttpRequest, key: Any = None) -> HttpResponse:
        """Show; ask whoever may change it."""
        if not may_read(request):
            raise PermissionDenied("Only operators and auditors may see this.")
        subject = self.find(key)
        return self.page(subject, self.form_class(initial=self.initial(subject)))

    def post(self, request: HttpRequest, key: Any = None) -> HttpResponse:
        """Change."""
        if not self.may_change(self.find(key)):
            raise PermissionDenied("Only an operator may do this, and only a superuser to a superuser.")
        return super().post(request, key)

    def act(self, subject: User, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Change it."""
        said = form.cleaned_data
        role = Role(said["role"]) if said["role"] else None
        changed = accounts.revise(subject, role=role, active=said["active"], by=by, now=now)
        return self.done(subject, f"{subject.get_username()} is saved." if changed else "Nothing was changed.")
