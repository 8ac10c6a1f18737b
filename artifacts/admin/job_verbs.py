"""The verbs on jobs, each a page of its own: cancel, retry, dismiss, forget."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import Http404, HttpResponse
from django.urls import URLPattern, path, reverse

from agent import wire
from artifacts import half_done, jobs, listed
from artifacts.admin.order_page import Order
from artifacts.admin.subjects import list_of, page_of
from artifacts.models import HalfDone, Job
from nodes.admin.act_page import ActPage, Trail
from nodes.admin.forms import OptionalReasonForm
from nodes.callers import Caller
from nodes.wording import size, span

LEAVES: dict[str, str] = {
    wire.VERIFY: "What is known of the snapshot stays what it was.",
    wire.REMOVE: "Once its agent has unpublished the snapshot, that comes too late: what is unpublished is deleted.",
}
"""What a job that is cancelled leaves, by its type."""


class JobActPage(ActPage):
    """An act on one job."""

    def find(self, key: Any) -> Job:
        """The job."""
        job = listed.jobs().filter(pk=key).first() if isinstance(key, UUID) else None
        if job is None:
            raise Http404("There is no such job.")
        return job

    def back(self, subject: Job) -> str:
        """The job's page."""
        return page_of(subject)

    def trail(self, subject: Job) -> Trail:
        """Over the list and the job's page."""
        return [("Jobs", list_of(Job)), (subject.repo_id, self.back(subject))]


class Cancel(JobActPage):
    """Stop a job."""

    title = "Cancel job"
    button = "Cancel the job"
    icon = "cancel"
    danger = True
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = [
        "A job that waits ends at once. One that runs is told to stop; its agent stops cleanly at its next word.",
    ]

    def more(self, subject: Job) -> dict[str, Any]:
        """What it leaves."""
        leaves = LEAVES.get(subject.type, "")
        if subject.type == wire.ACQUIRE and not subject.preflight_only:
            leaves = _kept() if settings.PARTIAL_GRACE else "Nothing is published, and what was fetched is deleted."
        return {"effects": [*self.effects, leaves] if leaves else self.effects}

    def act(self, subject: Job, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Cancel it."""
        job = jobs.cancel(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        told = "is cancelled" if job.state == Job.State.CANCELLED else "is told to stop"
        return self.done(subject, f"The job of {subject.repo_id} {told}.")


class Retry(JobActPage):
    """Let a job try again."""

    title = "Retry job"
    button = "Try again"
    icon = "replay"
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = [
        "The job is queued again with fresh attempts, for the same commit and files.",
    ]

    def more(self, subject: Job) -> dict[str, Any]:
        """What it begins with."""
        if subject.type != wire.ACQUIRE or subject.preflight_only:
            return {}
        left = half_done.of(subject)
        if left is not None and left.gone_at is not None:
            begins = "What it had fetched was deleted: it begins anew."
        elif left is not None and left.asked_at is not None:
            begins = "What it had fetched is about to be deleted. It goes on with what is still there, or begins anew."
        elif left is not None:
            begins = f"It goes on with what it left half done ({_amount(left)}), as long as that is kept."
        else:
            begins = "Nothing half done is known to be left of it: it begins anew."
        return {"effects": [*self.effects, begins]}

    def act(self, subject: Job, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Retry it."""
        jobs.retry(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"The job of {subject.repo_id} is queued again.")


class Dismiss(JobActPage):
    """Want no more of a job that failed."""

    title = "Dismiss failed job"
    button = "Dismiss"
    icon = "visibility_off"
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = [
        'It is no longer listed under "Needs attention". It stays in the list of jobs and in the history.',
        "Tried again, it counts anew.",
    ]

    def act(self, subject: Job, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Dismiss it."""
        jobs.dismiss(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, f"The failed job of {subject.repo_id} is dismissed.")


class Forget(JobActPage):
    """Give the room of its half-done files back."""

    title = "Delete half-done files"
    button = "Delete them"
    icon = "delete_sweep"
    danger = True
    form_class: ClassVar[type[forms.Form]] = OptionalReasonForm
    effects = [
        "A retry then begins anew: everything is fetched again. So does another order of the same.",
        "Its agent deletes them with its next claim, within a heartbeat while it is online. The job's page says that "
        "they are gone once the agent's word shows it.",
    ]

    def more(self, subject: Job) -> dict[str, Any]:
        """How much room it gives back."""
        left = half_done.of(subject)
        if left is None or left.gone_at is not None:
            return {}
        frees = f"Frees {_amount(left)} on {subject.node}, in {subject.root}."
        return {"effects": [frees, *self.effects]}

    def page(self, subject: Job, form: forms.Form, *, status: int = 200) -> HttpResponse:
        """The form; where there is nothing to ask for any more, the job's page says why."""
        settled = half_done.settled(subject) if status == 200 else ""
        return self.done(subject, settled) if settled else super().page(subject, form, status=status)

    def act(self, subject: Job, form: forms.Form, *, by: Caller, now: datetime) -> HttpResponse:
        """Ask for it."""
        told = f"{subject.node} is told to delete what the job of {subject.repo_id} left half done."
        settled = half_done.settled(subject)
        half_done.forget(subject, reason=form.cleaned_data["reason"], by=by, now=now)
        return self.done(subject, settled or told)


def _kept() -> str:
    return (
        f"Nothing is published. What was fetched is kept for {span(settings.PARTIAL_GRACE)}: a retry goes on with it. "
        "Where another order lacks the room, it is deleted before."
    )


def _amount(left: HalfDone) -> str:
    return "an amount that its agent has not measured" if left.bytes is None else size(left.bytes)


PAGES: dict[str, type[JobActPage]] = {"cancel": Cancel, "retry": Retry, "dismiss": Dismiss, "forget": Forget}


def verb(job: Job, name: str) -> str:
    """Where a verb on a job has its page."""
    return reverse(f"admin:artifacts_job_{name}", args=[job.pk])


def urls(model_admin: Any) -> list[URLPattern]:
    """The pages' addresses, ``add/`` and ``<job>/<verb>/``."""
    wrap = model_admin.admin_site.admin_view
    pages = [
        path(f"<uuid:key>/{name}/", wrap(page.as_view(model_admin=model_admin)), name=f"artifacts_job_{name}")
        for name, page in PAGES.items()
    ]
    return [path("add/", wrap(Order.as_view(model_admin=model_admin)), name="artifacts_job_add"), *pages]
