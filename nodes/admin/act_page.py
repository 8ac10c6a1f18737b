"""The page of one act: it says what will happen, asks for what the act needs, and shows a refusal in plain words."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from nodes.admin import form_once
from nodes.admin.access import clock, may_act, operator
from nodes.callers import Caller, Refused

Trail = list[tuple[str, str]]


@method_decorator([never_cache, sensitive_post_parameters()], name="dispatch")
class ActPage(View):
    """Subclasses name the words and the form, find the subject, and call the act; only operators get in."""

    model_admin: Any = None
    form_class: ClassVar[type[forms.Form]] = forms.Form
    title: ClassVar[str] = ""
    button: ClassVar[str] = "Confirm"
    icon: ClassVar[str] = "check"
    danger: ClassVar[bool] = False
    effects: ClassVar[list[str]] = []
    template: ClassVar[str] = "modelforge/act.html"
    makes_secret: ClassVar[bool] = False  # the form works once; ``act`` ends with ``secret_once``
    made: form_once.Made | None = None

    def find(self, key: Any) -> Model | None:
        """The subject, or None where the act makes a new one.

        Raises:
            Http404: there is no such subject.
        """
        raise NotImplementedError

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Call the act and answer."""
        raise NotImplementedError

    def back(self, subject: Any) -> str:
        """Where cancel leads, and success where nothing has to be shown."""
        raise NotImplementedError

    def trail(self, subject: Any) -> Trail:
        """The way to this page."""
        raise NotImplementedError

    def initial(self, subject: Any) -> dict[str, Any]:
        """What the form shows first."""
        return {}

    def more(self, subject: Any) -> dict[str, Any]:
        """What else the template needs."""
        return {}

    def get(self, request: HttpRequest, key: Any = None) -> HttpResponse:
        """Ask."""
        if not may_act(request):
            raise PermissionDenied("Only an operator may do this.")
        subject = self.find(key)
        return self.page(subject, self.form_class(initial=self.initial(subject)))

    def post(self, request: HttpRequest, key: Any = None) -> HttpResponse:
        """Act."""
        by = operator(request)
        subject = self.find(key)
        form = self.form_class(request.POST)
        if form.is_valid():
            try:
                return self.once(subject, form, by=by, now=clock())
            except Refused as refused:
                tell(form, refused)
        return self.page(subject, form, status=422)

    def once(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Act; where a secret is made, only at the form's first coming."""
        if not self.makes_secret:
            return self.act(subject, form, by=by, now=now)
        with transaction.atomic():
            place = form_once.claim(self.request, by=by, now=now)
            if isinstance(place, form_once.Made):
                trail = [*self.trail(subject), ("Made already", "")]
                context = {"title": "Made already", "trail": trail, "made": place}
                return self.render("modelforge/made_already.html", context, status=409)
            response = self.act(subject, form, by=by, now=now)
            if self.made is not None:
                form_once.note(place, self.made)
        return response

    def page(self, subject: Any, form: forms.Form, *, status: int = 200) -> HttpResponse:
        """The form with what it will do."""
        context = {
            "title": self.title,
            "trail": [*self.trail(subject), (self.title, "")],
            "subject": subject,
            "form": form,
            "effects": self.effects,
            "button": self.button,
            "icon": self.icon,
            "danger": self.danger,
            "back": self.back(subject),
            "form_nonce": form_once.nonce(self.request) if self.makes_secret else "",
            **self.more(subject),
        }
        return self.render(self.template, context, status=status)

    def render(self, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        """A page of the admin site."""
        site = self.model_admin.admin_site
        self.request.current_app = site.name
        return TemplateResponse(self.request, template, site.each_context(self.request) | context, status=status)

    def secret_once(self, template: str, context: dict[str, Any], *, made: form_once.Made) -> HttpResponse:
        """A page that holds a secret: rendered in the very answer to the POST, and kept by nobody."""
        self.made = made
        response = self.render(template, context | {"shows_secret": True})
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"
        return response

    def done(self, subject: Any, told: str) -> HttpResponse:
        """Back to the subject with a word of success; never with a secret in it."""
        messages.success(self.request, told)
        return HttpResponseRedirect(self.back(subject))


def tell(form: forms.Form, refused: Refused) -> None:
    """Put a refusal on the form: beside the fields at fault, or above them all."""
    placed = False
    for fault in refused.errors:
        name = fault.field.split(".")[0]
        if name in form.fields and not form.fields[name].widget.is_hidden:
            form.add_error(name, fault.detail)
            placed = True
    if not placed:
        form.add_error(None, refused.detail)
