"""The page on which a model is ordered."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from artifacts import listed, orders, room, wishes
from artifacts.admin.subjects import list_of, page_of
from artifacts.models import Job, StorageRoot
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import choice, switch, text
from nodes.callers import Caller
from nodes.wording import size

ROOTS_OFFERED = 500

FORMATS = {
    "pickle": "Pickles: .bin, .pt, .ckpt, .pkl and the like",
    "code": "Code: .py, .so, .sh, notebooks",
    "archive": "Archives: .zip, .tar and the like",
    "other": "Files of any other format",
}


class PatternsField(forms.CharField):
    """Patterns, one a line."""

    def __init__(self, label: str, help_text: str, example: str) -> None:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false", "placeholder": example})
        most = wishes.MAX_PATTERNS * (wishes.MAX_PATTERN + 2)
        super().__init__(label=label, required=False, max_length=most, help_text=help_text, widget=widget)

    def prepare_value(self, value: Any) -> Any:
        """Lines out of a list."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        """The list out of lines."""
        return [line.strip() for line in str(super().clean(value)).splitlines() if line.strip()]


class OrderForm(forms.Form):
    """A snapshot of the Hub, and where it shall go."""

    root = choice("Storage root", [], initial="")
    repo_id = text("Repository", most=200, required=True, placeholder="organization/model", help_text="On the Hub.")
    revision = text("Revision", most=250, required=True, help_text="A branch, a tag or a commit. It is pinned first.")
    allow_patterns = PatternsField(
        "Only these files", "One pattern a line; empty: all files. * crosses folders.", "*.safetensors"
    )
    ignore_patterns = PatternsField("Not these files", "One pattern a line.", "*.bin")
    allow_formats = forms.MultipleChoiceField(
        label="Formats allowed beside plain data",
        choices=list(FORMATS.items()),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Such files can run code when they are loaded. Leave all off unless you need one; then say why.",
    )
    reason = text("Reason", most=255, help_text="Told in the history; required where a format is allowed.")
    preflight_only = switch(
        "Preflight only", "Tell what it would bring and whether there is room; fetch nothing but the list of files."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["revision"].initial = "main"
        self.fields["root"].choices = [("", "Choose a storage root"), *offered()]  # type: ignore[attr-defined]


def offered() -> list[tuple[str, str]]:
    """The verified roots with the room that they have."""
    verified = listed.roots().filter(state=StorageRoot.State.VERIFIED, node__retired_at=None, node__enabled=True)
    found = verified.order_by("node__display_name", "container_path", "pk")[:ROOTS_OFFERED]
    return [(str(root.pk), f"{root.node} · {root.container_path} · {_room(root)}") for root in found]


def _room(root: StorageRoot) -> str:
    left = room.of_listed(root).room_bytes
    return "room not known" if left is None else f"room for {size(left)}"


class Order(ActPage):
    """Order a snapshot."""

    title = "Order a model"
    button = "Order"
    icon = "download"
    form_class: ClassVar[type[forms.Form]] = OrderForm
    template = "modelforge/order.html"
    effects = [
        "The commit is pinned first. Every file is checked against the digest that the Hub tells, then all are "
        "published at once.",
        "The same order, given while one is under way, joins it.",
    ]

    def find(self, key: Any) -> None:
        """There is no subject yet."""
        return

    def back(self, subject: Any) -> str:
        """The list."""
        return list_of(Job)

    def trail(self, subject: Any) -> Trail:
        """Over the list."""
        return [("Jobs", list_of(Job))]

    def initial(self, subject: Any) -> dict[str, Any]:
        """A root that the address names, or an earlier order to be given once more."""
        asked = self.request.GET
        earlier = _found(Job, asked.get("again", ""))
        if earlier is None:
            return {"root": asked.get("root", "")}
        names = ("repo_id", "revision", "allow_patterns", "ignore_patterns", "allow_formats", "reason")
        return {"root": str(earlier.root_id), **{name: getattr(earlier, name) for name in names}}

    def more(self, subject: Any) -> dict[str, Any]:
        """Roots that are not offered, so that nobody looks for them in vain."""
        unproven = [StorageRoot.State.PENDING, StorageRoot.State.UNVERIFIED]
        return {
            "roots_url": list_of(StorageRoot),
            "register_url": reverse("admin:artifacts_storageroot_add"),
            "unoffered": StorageRoot.objects.filter(state__in=unproven, node__retired_at=None).count(),
        }

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Order it."""
        said = dict(form.cleaned_data)
        root = StorageRoot.objects.get(pk=said.pop("root"))
        job, new = orders.acquire(root, **said, by=by, now=now)
        told = f"{job.repo_id} is ordered." if new else f"{job.repo_id} is under way already: this is that job."
        messages.success(self.request, told)
        return HttpResponseRedirect(page_of(job))


def _found(kind: type[Job], key: str) -> Job | None:
    try:
        return kind.objects.filter(pk=UUID(key)).first()
    except ValueError:
        return None
