"""What a job's page shows: how far it is, what was ordered, its lease and attempts, what came of it, and its course."""

from datetime import datetime
from typing import Any

from django.urls import reverse

from agent import wire
from artifacts import half_done, remedies
from artifacts.admin import course, job_verbs, progress, tables
from artifacts.admin.flags import does, of_job
from artifacts.admin.subjects import link
from artifacts.models import Job, QuarantinedFile
from nodes.admin.rows import Button, Row
from nodes.markup import badge
from nodes.wording import DASH, size

QUARANTINED_SHOWN = 32
DAMAGED_SHOWN = 20


def context(job: Job, now: datetime, *, acting: bool) -> dict[str, Any]:
    """Everything that the template needs."""
    files = QuarantinedFile.objects.filter(job=job).select_related("job")[:QUARANTINED_SHOWN]
    return {
        "title": job.repo_id,
        "job": job,
        "does": does(job),
        "live": 3 if job.state in Job.ACTIVE else 15,
        "state": badge(job.state, progress.TONES[Job.State(job.state)]),
        "phase": progress.phase(job),
        "node_link": link(job.node),
        "root_link": link(job.root),
        "artifact_link": link(job.artifact) if job.artifact is not None else "",
        "was_here": progress.was_here(job),
        "verbs": _verbs(job) if acting else [],
        "flags": list(of_job(job, now, ahead=_ahead(job))),
        "numbers": remedies.numbers(job.failure_numbers),
        "share": progress.share(job),
        "percent": progress.percent(job),
        "level": progress.level(job),
        "amount": progress.amount(job),
        "figures": _figures(job, now),
        "order_rows": _order(job),
        "lease_rows": _lease(job, now),
        "half_done_rows": _half_done(job, now),
        "preflight": _preflight(job.preflight),
        "verified_rows": _verified(job.verified),
        "damaged": list((job.verified or {}).get("damaged", []))[:DAMAGED_SHOWN],
        "pictures": course.pictures(job, now),
        "quarantined": tables.quarantined(files, now),
    }


def _ahead(job: Job) -> Job | None:
    """What its node does meanwhile, while it waits."""
    if job.state != Job.State.QUEUED:
        return None
    return Job.objects.filter(node=job.node_id, state=Job.State.RUNNING).defer("course").first()


def _verbs(job: Job) -> list[Button]:
    buttons = []
    if job.state == Job.State.QUEUED or (job.state == Job.State.RUNNING and job.cancel_requested_at is None):
        buttons.append(Button("Cancel", job_verbs.verb(job, "cancel"), "cancel", danger=True))
    if job.state in {Job.State.FAILED, Job.State.CANCELLED}:
        buttons.append(Button("Retry", job_verbs.verb(job, "retry"), "replay"))
    if job.state == Job.State.FAILED and job.dismissed_at is None:
        buttons.append(Button("Dismiss", job_verbs.verb(job, "dismiss"), "visibility_off"))
    left = half_done.of(job)
    if left is not None and left.asked_at is None:
        buttons.append(Button("Delete half-done files", job_verbs.verb(job, "forget"), "delete_sweep", danger=True))
    if job.type == wire.ACQUIRE and job.state not in Job.ACTIVE:
        words = "Order it now" if job.preflight_only else "Order again"
        buttons.append(Button(words, f"{reverse('admin:artifacts_job_add')}?again={job.pk}", "download"))
    return buttons


def _figures(job: Job, now: datetime) -> list[tuple[str, str, str]]:
    """What stands beside the bar: a label, a value, a tooltip."""
    if job.progress_at is None or not job.bytes_total:
        return []
    files = f"{job.files_done} of {job.files_total}" if job.files_total else DASH
    figures = [
        ("Files", files, "Done and all"),
    ]
    if job.type == wire.ACQUIRE:
        figures += [
            ("Fetched", size(job.bytes_fetched), "Over the network, all attempts together"),
            ("Reused", size(job.bytes_reused), "From other snapshots or the Hub cache, verified like all else"),
        ]
    if job.state == Job.State.RUNNING:
        return [
            ("Rate", progress.rate(job, now), "As the agent told last"),
            ("Left", progress.left(job, now), ""),
            *figures,
        ]
    return figures


def _order(job: Job) -> list[Row]:
    rows = [
        Row("Type", job.type),
        Row("Revision", job.revision, "As it was ordered"),
        Row("Commit", job.commit or "not pinned yet", "Pinned before the first byte"),
    ]
    if job.type == wire.ACQUIRE:
        rows += [
            Row("Only these files", " · ".join(job.allow_patterns) or "all files"),
            Row("Not these files", " · ".join(job.ignore_patterns) or "none"),
            Row("Formats allowed", ", ".join(job.allow_formats) or "plain data only"),
            Row("Preflight only", "yes" if job.preflight_only else "no"),
        ]
    if job.reason:
        rows.append(Row("Reason", job.reason))
    return [*rows, Row("Ordered", f"by {job.created_by}", at=job.created_at), Row("Job id", str(job.pk))]


def _lease(job: Job, now: datetime) -> list[Row]:
    rows = [
        Row("Attempts begun", str(job.attempt)),
        Row("Attempts spent", f"{job.spent} of {job.max_attempts}", "Those that count against the bound"),
        Row("Started", at=job.started_at) if job.started_at else Row("Started", "not yet"),
        Row("Last heard", at=job.progress_at) if job.progress_at else Row("Last heard", "never"),
    ]
    if job.state == Job.State.QUEUED and job.not_before is not None and job.not_before > now:
        rows.append(Row("Next attempt", at=job.not_before))
    if job.state == Job.State.RUNNING and job.lease_expires_at is not None:
        over = job.lease_expires_at < now
        rows.append(Row("Lease ran out" if over else "Lease runs out unless heard", at=job.lease_expires_at))
        rows.append(Row("Boot id", str(job.boot_id or DASH), "The agent's process that holds it"))
    if job.cancel_requested_at is not None:
        rows.append(
            Row("Told to stop", f"by {job.cancelled_by}" if job.cancelled_by else "", at=job.cancel_requested_at)
        )
    elif job.cancelled_by:
        rows.append(Row("Cancelled by", job.cancelled_by))
    if job.finished_at is not None:
        rows += [Row("Ended", at=job.finished_at), Row("Took", progress.took(job), "From the first start to the end")]
    if job.dismissed_at is not None:
        rows.append(Row("Dismissed", f"by {job.dismissed_by}", at=job.dismissed_at))
    return rows


def _half_done(job: Job, now: datetime) -> list[Row]:
    """What it left on its node's disk, and what becomes of that."""
    left = half_done.of(job)
    if left is None:
        return []
    measured = size(left.bytes) if left.bytes is not None else "not measured"
    if left.gone_at is not None:
        return [
            Row("Deleted", f"{measured}, asked by {left.asked_by}", "Its agent's word lacked them", at=left.gone_at)
        ]
    rows = [Row("On the disk", measured, "What their deletion frees, as its agent told last")]
    if left.asked_at is not None:
        return [*rows, Row("To be deleted", f"asked by {left.asked_by}", at=left.asked_at)]
    until = half_done.kept_until(job, left)
    if until is None or until <= now:
        return [*rows, Row("Deleted unless tried again", "with its agent's next claim")]
    return [*rows, Row("Deleted unless tried again", at=until)]


def _preflight(told: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    if told is None:
        return []
    largest = f"{size(told.get('largest_bytes'))} · {told.get('largest_file') or DASH}"
    return [
        ("Files", str(told.get("files", DASH)), ""),
        ("Bytes", size(told.get("bytes")), ""),
        ("Room", "enough" if told.get("fits") else "not enough", ""),
        ("Needed with the reserve", size(told.get("needed_bytes")), "Still to be written by this and other jobs, too"),
        ("Free", size(told.get("free_bytes")), ""),
        ("Gated", "yes" if told.get("gated") else "no", ""),
        ("Would be refused", "yes" if told.get("refused") else "no", str(told.get("refused") or "")),
        ("Largest file", largest, ""),
    ]


def _verified(told: dict[str, Any] | None) -> list[Row]:
    if told is None:
        return []
    damaged = told.get("damaged") or []
    found = (
        "the snapshot is not there" if told.get("missing") else f"{len(damaged)} damaged" if damaged else "all is well"
    )
    return [
        Row("Found", found),
        Row("Files read", str(told.get("files", DASH))),
        Row("Bytes read", size(told.get("bytes"))),
    ]
