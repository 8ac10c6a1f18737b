"""Jobs, artifacts and quarantined files as small tables, for the pages of what they belong to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts import remedies, standing
from artifacts.admin import progress
from artifacts.admin.flags import does
from artifacts.admin.subjects import link
from artifacts.half_done import kept_until
from artifacts.models import Artifact, HalfDone, Job, QuarantinedFile
from nodes.markup import badge, chip, when
from nodes.wording import DASH, size

ARTIFACT_TONES = {
    Artifact.State.PUBLISHED: "success",
    Artifact.State.DAMAGED: "danger",
    Artifact.State.REMOVED: "neutral",
}
REASONS = {"digest_mismatch": "wrong bytes", "unsafe_format": "unsafe format", "damaged": "damaged"}


@dataclass(frozen=True, slots=True)
class Table:
    """Headers and rows."""

    headers: list[str]
    rows: list[list[Any]]


def job_state(job: Job, now: datetime) -> SafeString:
    """A job's state, with its phase while it runs, and its failure."""
    shown = badge(job.state, progress.TONES[Job.State(job.state)], job.failure_detail)
    if job.state == Job.State.RUNNING:
        if not progress.heard(job, now):
            return format_html("{} {}", shown, chip("not heard", "warning", "Its lease ran out"))
        return format_html('{}<span class="mf-line mf-subtle">{}</span>', shown, progress.phase(job))
    if job.state == Job.State.FAILED:
        title, remedy = remedies.failure(job.failure_code)
        if job.dismissed_at is not None:
            return format_html('{}<span class="mf-line mf-subtle">{} · dismissed</span>', shown, title)
        return format_html('{}<span class="mf-line mf-fault" title="{}">{}</span>', shown, remedy, title)
    if verdict := remedies.verdict(job.preflight):
        return format_html('{}<span class="mf-line mf-subtle">{}</span>', shown, verdict)
    if job.state == Job.State.QUEUED and job.failure_code:
        return format_html("{} {}", shown, chip("failed before", "warning", remedies.failure(job.failure_code)[0]))
    return shown


def artifact_state(artifact: Artifact) -> SafeString:
    """An artifact's state; of one that is gone, with what was last known."""
    if standing.of(artifact) == standing.GONE:
        shown = badge(standing.GONE, "neutral", f"Its root or node was retired; last known: {artifact.state}")
        return format_html('{}<span class="mf-line mf-subtle">was {}</span>', shown, artifact.state)
    return badge(artifact.state, ARTIFACT_TONES[Artifact.State(artifact.state)])


def commit(text: str) -> SafeString | str:
    """A commit's beginning, with the whole in the tooltip."""
    return format_html('<code class="mf-mono" title="{}">{}</code>', text, text[:12]) if text else DASH


def jobs(listed: Iterable[Job], now: datetime, *, with_node: bool = True) -> Table:
    """Jobs with how far they are."""
    rows = [
        [
            format_html(
                '{}<span class="mf-line mf-subtle">{} · {}</span>', link(job, job.repo_id), does(job), job.revision[:40]
            ),
            job_state(job, now),
            *([link(job.node)] if with_node else []),
            progress.cell(job, now),
            when(job.created_at, now),
        ]
        for job in listed
    ]
    return Table(["Job", "State", *(["Node"] if with_node else []), "Progress", "Ordered"], rows)


def artifacts(listed: Iterable[Artifact], now: datetime, *, with_node: bool = True) -> Table:
    """Artifacts with their sizes."""
    rows = [
        [
            link(artifact, artifact.repo_id),
            commit(artifact.commit),
            artifact_state(artifact),
            *([link(artifact.node)] if with_node else []),
            size(artifact.bytes),
            when(artifact.published_at, now),
            when(artifact.verified_at, now),
        ]
        for artifact in listed
    ]
    headers = ["Artifact", "Commit", "State", *(["Node"] if with_node else []), "Size", "Published", "Verified"]
    return Table(headers, rows)


def half_done(lying: Iterable[HalfDone], now: datetime) -> Table:
    """What jobs left half done in a root, and until when it stays."""
    rows = []
    for left in lying:
        until = kept_until(left.job, left)
        why = "They were kept long enough" if until else f"As {left.asked_by} asked"
        goes = when(until, now) if until and until > now else chip("with the next claim", "info", why)
        job = format_html(
            '{}<span class="mf-line mf-subtle">{}</span>', link(left.job, left.job.repo_id), left.job.revision[:40]
        )
        rows.append([job, job_state(left.job, now), size(left.bytes) if left.bytes is not None else DASH, goes])
    return Table(["Job", "State", "Room", "Deleted"], rows)


def quarantined(files: Iterable[QuarantinedFile], now: datetime) -> Table:
    """Files that were not what their repository says."""
    rows = [
        [
            format_html(
                '<span class="mf-clip" title="{0}">{0}</span><span class="mf-clip mf-subtle" title="{1}">{1}</span>',
                file.path,
                file.repo_id,
            ),
            REASONS.get(file.reason, file.reason.replace("_", " ")),
            size(file.size_bytes),
            _digest(file.expected),
            _digest(file.found),
            format_html('<code class="mf-mono mf-clip" title="{0}">{0}</code>', file.location)
            if file.kept and file.location
            else "not kept: no room",
            link(file.job, "job") if file.job is not None else DASH,
            when(file.at, now),
        ]
        for file in files
    ]
    headers = ["File", "Why", "Size", "Expected", "Found", "In the quarantine volume", "By", "When"]
    return Table(headers, rows)


def _digest(text: str) -> SafeString | str:
    return format_html('<code class="mf-mono" title="{}">{}…</code>', text, text[:10]) if text else DASH
