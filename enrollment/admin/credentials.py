"""A node's credential: the card on the node's page, and the pages that rotate and revoke it."""

from datetime import datetime, timedelta
from typing import ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from enrollment import credentials
from enrollment.admin.reached import only_from_here
from enrollment.models import NodeCredential
from nodes.admin.access import ReadOnlyAdmin
from nodes.admin.form_once import Made
from nodes.admin.forms import ReasonForm, choice, text
from nodes.admin.node_page import PANELS
from nodes.admin.rows import Button, Panel, Row
from nodes.admin.verbs import NodeActPage
from nodes.callers import Caller
from nodes.markup import badge, when
from nodes.models import CredentialState, Node
from nodes.wording import DASH

SHOWN = 8
INSTALL = "MODELFORGE_AGENT_STATE_DIR=~/modelforge-data/state .venv/bin/python -m agent credential set"

OVERLAPS = [
    ("0", "None: the old one dies now"),
    ("3600", "1 hour"),
    ("86400", "1 day"),
    ("604800", "7 days"),
]

State = NodeCredential.State
TONES = {State.PENDING: "info", State.ACTIVE: "success", State.SUPERSEDED: "neutral", State.REVOKED: "danger"}


class RotationForm(forms.Form):
    """How long the old credential goes on beside the new one."""

    overlap = choice(
        "Old credential works for",
        OVERLAPS,
        initial="86400",
        help_text="At most; it dies earlier, as soon as the new one is used.",
    )
    reason = text("Reason", most=255, help_text="Optional; told in the history.")


class Rotate(NodeActPage):
    """Give a node a new credential."""

    title = "Rotate credential"
    button = "Rotate"
    icon = "sync_lock"
    makes_secret = True
    form_class: ClassVar[type[forms.Form]] = RotationForm
    effects = [
        "Makes a new credential, shown once on the next page. A new one that was not used yet is replaced.",
        "Install it on the server with “python -m agent credential set”; the running agent notices without a restart.",
    ]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Rotate, and show the new one once."""
        overlap = timedelta(seconds=int(form.cleaned_data["overlap"]))
        reason = form.cleaned_data["reason"]
        credential, secret = credentials.rotate(subject, overlap=overlap, by=by, now=now, reason=reason)
        node = Node.objects.get(pk=subject.pk)
        context = {
            "title": "New credential",
            "trail": [*self.trail(subject), ("New credential", "")],
            "node": node,
            "credential": credential,
            "secret": secret,
            "install": INSTALL,
            "by_hand_first": only_from_here(),
            "now": now,
            "back": self.back(subject),
        }
        made = Made(str(credential.pk), f"The credential …{credential.last_four}", self.back(subject))
        return self.secret_once("modelforge/rotated.html", context, made=made)


class Revoke(NodeActPage):
    """End every credential of a node."""

    title = "Revoke credential"
    button = "Revoke now"
    icon = "key_off"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "Every credential of this node stops working at once; nothing takes its place.",
        "The agent keeps its identity and parks. It comes back by a rotated credential installed by hand, or by a new "
        "enrollment token.",
    ]

    def act(self, subject: Node, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Revoke."""
        revoked = credentials.revoke(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        told = f"The credential of {subject.display_name} is revoked." if revoked else "There was no live credential."
        return self.done(subject, told)


@admin.register(NodeCredential)
class NodeCredentialAdmin(ReadOnlyAdmin):
    """Carries the two pages; credentials have no list of their own, each node's page shows its own."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Not on any menu."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: NodeCredential | None = None) -> bool:
        """There is no list."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Rotate and revoke, by node."""
        wrap = self.admin_site.admin_view
        pages = [
            path(
                f"node/<uuid:key>/{verb}/",
                wrap(page.as_view(model_admin=self)),
                name=f"enrollment_nodecredential_{verb}",
            )
            for verb, page in (("rotate", Rotate), ("revoke", Revoke))
        ]
        return [*pages, *super().get_urls()]


def panel(node: Node, now: datetime) -> Panel:
    """The credential's card on the node's page."""
    known = list(NodeCredential.objects.filter(node=node).order_by("-issued_at")[:SHOWN])
    state = CredentialState(node.credential_state)
    rows = [Row("State", "refused: the node is retired" if node.retired_at else state.label)]
    if node.retired_at is None and state is CredentialState.ROTATING and node.rotation_ends_at is not None:
        rows.append(Row("Old one dies at the latest", at=node.rotation_ends_at))
    table = [
        [
            f"…{credential.last_four}",
            badge(credential.state, TONES[State(credential.state)], credential.end_reason),
            credential.get_origin_display().lower(),
            when(credential.issued_at, now),
            when(credential.first_used_at, now) if credential.first_used_at else "never",
            _end(credential, now),
        ]
        for credential in known
    ]
    buttons = []
    if node.retired_at is None:
        buttons = [
            Button("Rotate", reverse("admin:enrollment_nodecredential_rotate", args=[node.pk]), "sync_lock"),
            Button("Revoke", reverse("admin:enrollment_nodecredential_revoke", args=[node.pk]), "key_off", danger=True),
        ]
    return Panel("Credential", rows, ["Ends in", "State", "Origin", "Issued", "First used", "End"], table, buttons)


def _end(credential: NodeCredential, now: datetime) -> str:
    if credential.ended_at is not None:
        return when(credential.ended_at, now)
    return when(credential.dies_at, now) if credential.dies_at is not None else DASH


PANELS.append(panel)
