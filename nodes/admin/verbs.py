"""The verbs on a node's page, each a page of its own that calls one act of ``nodes.control``."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.http import Http404, HttpResponse
from django.urls import URLPattern, path, reverse

from nodes import control
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import OptionalReasonForm, ReasonForm, RevisionForm
from nodes.callers import Caller
from nodes.models import Node


class NodeActPage(ActPage):
    """An act on one node."""

    def find(self, key: Any) -> Node:
        """The node."""
        node = Node.objects.filter(pk=key).first() if isinstance(key, UUID) else None
        if node is None:
            raise Http404("There is no such node.")
        return node

    def back(self, subject: Node) -> str:
        """The node's page."""
        return reverse("admin:nodes_node_change", args=[subject.pk])

    def trail(self, subject: Node) -> Trail:
        """Over the list and the node's page."""
        return [("Compute nodes", reverse("admin:nodes_node_changelist")), (subject.display_name, self.back(subject))]


class Disable(NodeActPage):
    """Take a node out of service."""

    title = "Disable node"
    button = "Disable"
    icon = "pause_circle"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "The node counts as ineligible for everything.",
        "Every publication of its agent is refused at once with 403 node_disabled; the contact itself is still noted.",
        "Nothing is lost: enabled again, the agent goes on by itself.",
    ]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Disable it."""
        control.disable(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"{subject.display_name} is disabled.")


class Enable(NodeActPage):
    """Put a disabled node back into service."""

    title = "Enable node"
    button = "Enable"
    icon = "play_circle"
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = ["The agent's publications are accepted again; it goes on by itself within its retry interval."]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Enable it."""
        control.enable(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"{subject.display_name} is enabled.")


class Retire(NodeActPage):
    """Take a node out for good."""

    title = "Retire node"
    button = "Retire for good"
    icon = "archive"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "This is final. The node disappears from the list; its page and its history stay.",
        "Its agent is answered with 410 node_retired and parks.",
        "The same server can come back only as a new node: with an empty state volume and a new enrollment token.",
    ]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Retire it."""
        control.retire(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"{subject.display_name} is retired.")


class ClearConflict(NodeActPage):
    """Take the flag of an identity conflict down."""

    title = "Clear identity conflict"
    button = "Clear the flag"
    icon = "done_all"
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "Stop one of the two agents first: whichever speaks next goes on as this node.",
        "A second agent that still speaks raises the flag again.",
    ]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Clear it."""
        control.clear_conflict(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"The conflict of {subject.display_name} is cleared.")


class Edit(NodeActPage):
    """Change what operators say about a node."""

    title = "Edit node"
    button = "Save"
    icon = "save"
    form_class: ClassVar[type[forms.Form]] = RevisionForm
    effects = ["Eligibility is metadata for schedulers: setting it launches nothing."]

    def initial(self, subject: Node) -> dict[str, Any]:
        """As it stands."""
        return {name: getattr(subject, name) for name in (*control.REVISABLE, "version")}

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Revise it, unless somebody was faster."""
        changes = {name: form.cleaned_data[name] for name in control.REVISABLE}
        control.revise(subject, changes, version=form.cleaned_data["version"], by=by, now=now)
        return self.done(subject, f"{changes['display_name']} is saved.")


PAGES: dict[str, type[NodeActPage]] = {
    "edit": Edit,
    "disable": Disable,
    "enable": Enable,
    "retire": Retire,
    "clear_conflict": ClearConflict,
}


def urls(model_admin: Any) -> list[URLPattern]:
    """The pages' addresses, ``<node>/<verb>/``."""
    return [
        path(
            f"<uuid:key>/{verb.replace('_', '-')}/",
            model_admin.admin_site.admin_view(page.as_view(model_admin=model_admin)),
            name=f"nodes_node_{verb}",
        )
        for verb, page in PAGES.items()
    ]
