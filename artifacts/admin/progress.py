"""How far a job is, as pages say it: never whole before it is, and only as fresh as its agent's last word."""

from datetime import datetime, timedelta

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agent import wire
from artifacts import remedies
from artifacts.models import Job
from nodes.markup import when
from nodes.wording import DASH, size, span

TONES = {
    Job.State.QUEUED: "neutral",
    Job.State.RUNNING: "info",
    Job.State.SUCCEEDED: "success",
    Job.State.FAILED: "danger",
    Job.State.CANCELLED: "neutral",
}
LEVELS = {Job.State.FAILED: "danger", Job.State.CANCELLED: "quiet", Job.State.QUEUED: "quiet"}


def share(job: Job) -> float | None:
    """Percent done, rounded down; None before the plan is made."""
    if job.bytes_total <= 0:
        return None
    return float(100 * job.bytes_done // job.bytes_total)


def percent(job: Job) -> str:
    """The share in words."""
    done = share(job)
    return DASH if done is None else f"{done:.0f} %"


def level(job: Job) -> str:
    """The bar's colour."""
    return LEVELS.get(Job.State(job.state), "fine")


def bar(done: float, tone: str = "fine") -> SafeString:
    """A bar, filled to so many percent."""
    return format_html(
        '<svg class="mf-bar mf-{}" role="img" aria-label="{} percent" preserveAspectRatio="none"><title>{} %</title>'
        '<rect class="mf-track" width="100%" height="100%" rx="3"/>'
        '<rect class="mf-fill" width="{}%" height="100%" rx="3"/></svg>',
        tone,
        *3 * [f"{min(max(done, 0), 100):.0f}"],
    )


def amount(job: Job) -> str:
    """Bytes done of all."""
    if job.bytes_total <= 0:
        return DASH
    whole = size(job.bytes_total)
    return whole if job.bytes_done >= job.bytes_total else f"{size(job.bytes_done)} of {whole}"


def heard(job: Job, now: datetime) -> bool:
    """Whether its agent holds it under a lease that has not run out."""
    return job.state == Job.State.RUNNING and job.lease_expires_at is not None and job.lease_expires_at > now


def rate(job: Job, now: datetime) -> str:
    """Bytes per second, while it runs and its agent is heard."""
    if not heard(job, now) or not job.bytes_per_second:
        return DASH
    return f"{size(job.bytes_per_second)}/s"


def left(job: Job, now: datetime) -> str:
    """What the agent reckons that is left, while it runs and its agent is heard."""
    if not heard(job, now) or job.eta_seconds is None:
        return DASH
    return f"about {span(timedelta(seconds=job.eta_seconds))}"


def phase(job: Job) -> str:
    """What a running job is at."""
    if job.state != Job.State.RUNNING:
        return ""
    return remedies.PHASES.get(job.phase, job.phase) or "claimed"


def was_here(job: Job) -> bool:
    """Whether a snapshot was ordered that lay there already."""
    brought = job.bytes_fetched + job.bytes_reused
    return job.type == wire.ACQUIRE and job.state == Job.State.SUCCEEDED and job.bytes_total > 0 and not brought


def took(job: Job) -> str:
    """From the first claim to the end."""
    if job.started_at is None or job.finished_at is None:
        return DASH
    return span(job.finished_at - job.started_at)


def cell(job: Job, now: datetime) -> SafeString | str:
    """Bar and words, for a list."""
    done = share(job)
    if done is None:
        return DASH
    told: SafeString | str = percent(job)
    if job.state == Job.State.RUNNING and job.progress_at is not None:
        told = format_html("{}, heard {}", told, when(job.progress_at, now))
    return format_html(
        '<span class="mf-measure mf-progress">{}<span class="mf-line mf-subtle">{}<br>{}</span></span>',
        bar(done, level(job)),
        amount(job),
        told,
    )
