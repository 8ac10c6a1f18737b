"""The verbs on storage roots, each a page of its own that calls one act of ``artifacts.storage``."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from artifacts import storage
from artifacts.admin.root_forms import RegistrationForm, RevisionForm, by_form
from artifacts.admin.subjects import list_of, page_of
from artifacts.models import StorageRoot
from nodes.admin.access import clock
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import ReasonForm
from nodes.callers import Caller, Refused
from nodes.models import Node, Volume
from nodes.wording import size

VOLUMES_SHOWN = 20


class Register(ActPage):
    """Register a folder."""

    title = "Register storage root"
    button = "Register"
    icon = "create_new_folder"
    form_class: ClassVar[type[forms.Form]] = RegistrationForm
    template = "modelforge/register_root.html"
    effects = [
        "No job runs until the agent has proven the folder: it puts a marker there, and tells the disk it lies on.",
        "From then on the folder is watched. Without its marker, or on another disk, no job runs there.",
    ]

    def find(self, key: Any) -> None:
        """There is no subject yet."""
        return

    def back(self, subject: Any) -> str:
        """The list, or the node that the way led from."""
        node = self.chosen()
        return page_of(node) if node else list_of(StorageRoot)

    def trail(self, subject: Any) -> Trail:
        """Over the list."""
        return [("Storage roots", list_of(StorageRoot))]

    def chosen(self) -> Node | None:
        """The node that the address names."""
        try:
            return Node.objects.filter(pk=UUID(self.request.GET.get("node", ""))).defer("facts").first()
        except ValueError:
            return None

    def initial(self, subject: Any) -> dict[str, Any]:
        """The node, and a folder in its volume."""
        node = self.chosen()
        if node is None:
            return {}
        volume = Volume.objects.filter(node=node, name=storage.VOLUME).first()
        return {"node": str(node.pk), "container_path": f"{volume.path.rstrip('/')}/models" if volume else ""}

    def more(self, subject: Any) -> dict[str, Any]:
        """The artifact volumes that agents told of, the chosen node's first."""
        node = self.chosen()
        volumes = Volume.objects.filter(name=storage.VOLUME, node__retired_at=None).select_related("node")
        if node is not None:
            volumes = volumes.filter(node=node)
        shown = volumes.defer("node__facts", "facts").order_by("node__display_name")[: VOLUMES_SHOWN + 1]
        told = [(volume, size(volume.free_bytes), size(volume.total_bytes)) for volume in shown]
        return {"now": clock(), "volumes": told[:VOLUMES_SHOWN], "more_volumes": len(told) > VOLUMES_SHOWN}

    def act(self, subject: Any, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Register it."""
        said = dict(form.cleaned_data)
        node = Node.objects.filter(pk=said.pop("node")).first()
        if node is None:
            raise Http404("There is no such node.")
        limits = {**said.pop("reserve"), "ceiling_bytes": said.pop("ceiling")}
        try:
            root = storage.register(node, **said, **limits, by=by, now=now)
        except Refused as refused:
            raise by_form(refused) from None
        messages.success(self.request, f"{root} is registered. The agent of {node} will prove it.")
        return HttpResponseRedirect(page_of(root))


class RootActPage(ActPage):
    """An act on one root."""

    def find(self, key: Any) -> StorageRoot:
        """The root."""
        root = StorageRoot.objects.select_related("node").filter(pk=key).first() if isinstance(key, UUID) else None
        if root is None:
            raise Http404("There is no such storage root.")
        return root

    def back(self, subject: StorageRoot) -> str:
        """The root's page."""
        return page_of(subject)

    def trail(self, subject: StorageRoot) -> Trail:
        """Over the list and the root's page."""
        return [("Storage roots", list_of(StorageRoot)), (str(subject), self.back(subject))]


class Edit(RootActPage):
    """Change what operators say about a root."""

    title = "Edit storage root"
    button = "Save"
    icon = "save"
    form_class: ClassVar[type[forms.Form]] = RevisionForm
    effects = ["The container path is what was proven, and stays: for another folder register another root."]

    def initial(self, subject: StorageRoot) -> dict[str, Any]:
        """As it stands."""
        reserve = {"reserve_bytes": subject.reserve_bytes, "reserve_percent": subject.reserve_percent}
        stands = {name: getattr(subject, name) for name in ("host_path", "purpose", "version")}
        return stands | {"reserve": reserve, "ceiling": subject.ceiling_bytes}

    def act(self, subject: StorageRoot, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Revise it, unless somebody was faster."""
        said = dict(form.cleaned_data)
        version = said.pop("version")
        changes = {**said.pop("reserve"), "ceiling_bytes": said.pop("ceiling"), **said}
        try:
            storage.revise(subject, changes, version=version, by=by, now=now)
        except Refused as refused:
            raise by_form(refused) from None
        return self.done(subject, f"{subject} is saved.")


class Approve(RootActPage):
    """Take the folder as it is now."""

    title = "Approve storage root again"
    button = "Approve the folder as it is now"
    icon = "verified"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "The agent writes the marker where none is, and records the disk that the folder lies on now, whichever that "
        "is. Another root's marker it leaves.",
        "First make sure that the right disk is mounted: approved on the wrong one, models fill that.",
        "Until the agent has proven it, no job runs there.",
    ]

    def act(self, subject: StorageRoot, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Approve it."""
        storage.approve_again(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"The agent of {subject.node} will prove {subject} as it finds it.")


class Retire(RootActPage):
    """Use a folder no more."""

    title = "Retire storage root"
    button = "Retire"
    icon = "archive"
    danger = True
    form_class: ClassVar[type[forms.Form]] = ReasonForm
    effects = [
        "No job runs there any more; jobs that wait for it are cancelled. Nobody watches the folder.",
        "Nothing is deleted: what lies there stays. To have artifacts deleted, remove them first.",
        "The folder may be registered again, as a new root of this node.",
    ]

    def act(self, subject: StorageRoot, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Retire it."""
        storage.retire(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"{subject} is retired.")


PAGES: dict[str, type[RootActPage]] = {"edit": Edit, "approve": Approve, "retire": Retire}


def verb(root: StorageRoot, name: str) -> str:
    """Where a verb on a root has its page."""
    return reverse(f"admin:artifacts_storageroot_{name}", args=[root.pk])


def urls(model_admin: Any) -> list[URLPattern]:
    """The pages' addresses, ``add/`` and ``<root>/<verb>/``."""
    wrap = model_admin.admin_site.admin_view
    pages = [
        path(f"<uuid:key>/{name}/", wrap(page.as_view(model_admin=model_admin)), name=f"artifacts_storageroot_{name}")
        for name, page in PAGES.items()
    ]
    register = wrap(Register.as_view(model_admin=model_admin))
    return [path("add/", register, name="artifacts_storageroot_add"), *pages]
