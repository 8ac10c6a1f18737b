"""What the home page shows of artifacts: what runs, what an operator should look at, and the fullest disks."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.utils.safestring import SafeString

from artifacts import listed, standing
from artifacts.admin import progress
from artifacts.admin.flags import of_artifact, of_job, of_root
from artifacts.admin.roots import fullness
from artifacts.admin.subjects import link, page_of
from artifacts.models import Artifact, Job, StorageRoot
from nodes.admin.flags import Flag
from nodes.wording import size

RUNNING_SHOWN = 6
FULLEST_SHOWN = 5
CONCERNS_SHOWN = 6  # of each kind


@dataclass(frozen=True, slots=True)
class Concern:
    """A root, a job or an artifact that wants an operator's eye."""

    name: str
    where: str
    link: str
    flags: list[Flag]


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it."""

    roots: int = 0
    running: int = 0
    queued: int = 0
    artifacts: int = 0
    artifact_size: str = ""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    disks: list[tuple[SafeString, SafeString, SafeString | str]] = field(default_factory=list)
    concerns: list[Concern] = field(default_factory=list)
    concerned: int = 0


def overview(now: datetime) -> Overview:
    """As it stands now, in a constant number of queries."""
    roots = StorageRoot.objects.filter(node__retired_at=None).exclude(state=StorageRoot.State.RETIRED)
    root_counts = roots.aggregate(all=Count("pk"), bad=Count("pk", filter=Q(state=StorageRoot.State.UNVERIFIED)))
    states = dict(Job.objects.filter(state__in=Job.ACTIVE).order_by().values_list("state").annotate(n=Count("pk")))
    kept = Artifact.objects.filter(standing.HERE)
    is_damaged = Q(state=Artifact.State.DAMAGED)
    artifact_counts = kept.aggregate(all=Count("pk"), bytes=Sum("bytes"), bad=Count("pk", filter=is_damaged))
    failed = listed.failed_of_late(now)
    failures = failed.count()
    running = states.get(Job.State.RUNNING, 0)
    return Overview(
        roots=root_counts["all"],
        running=running,
        queued=states.get(Job.State.QUEUED, 0),
        artifacts=artifact_counts["all"],
        artifact_size=size(artifact_counts["bytes"]) if artifact_counts["all"] else "",
        jobs=_running(now) if running else [],
        disks=_fullest(now) if root_counts["all"] else [],
        concerns=[
            *(_roots(now) if root_counts["bad"] else []),
            *(_failed(now) if failures else []),
            *(_damaged(now) if artifact_counts["bad"] else []),
        ],
        concerned=root_counts["bad"] + failures + artifact_counts["bad"],
    )


def _running(now: datetime) -> list[dict[str, Any]]:
    found = listed.jobs().filter(state=Job.State.RUNNING).order_by("started_at", "pk")[:RUNNING_SHOWN]
    return [
        {
            "link": link(job, job.repo_id),
            "node": link(job.node),
            "phase": progress.phase(job),
            "share": progress.share(job),
            "percent": progress.percent(job),
            "amount": progress.amount(job),
            "pace": f"{progress.rate(job, now)} · {progress.left(job, now)} left" if progress.heard(job, now) else "",
            "heard_at": job.progress_at,
            "flags": list(of_job(job, now)),
        }
        for job in found
    ]


def _fullest(now: datetime) -> list[tuple[SafeString, SafeString, SafeString | str]]:
    """The roots with the smallest free share: two roots of one disk show it twice, and nothing is added up."""
    roots = listed.roots().filter(node__retired_at=None, total_bytes__gt=0, free_bytes__isnull=False)
    free = roots.exclude(state=StorageRoot.State.RETIRED).annotate(free=F("free_bytes") * 1000 / F("total_bytes"))
    found = free.order_by("free", "pk")[:FULLEST_SHOWN]
    return [(link(root.node), link(root), fullness(root, now)) for root in found]


def _roots(now: datetime) -> list[Concern]:
    return [
        Concern(root.container_path, str(root.node), page_of(root), list(of_root(root, now)))
        for root in listed.unverified()[:CONCERNS_SHOWN]
    ]


def _failed(now: datetime) -> list[Concern]:
    return [
        Concern(job.repo_id, str(job.node), page_of(job), list(of_job(job, now)))
        for job in listed.failed_of_late(now)[:CONCERNS_SHOWN]
    ]


def _damaged(now: datetime) -> list[Concern]:
    damaged = listed.artifacts().filter(standing.shows(Artifact.State.DAMAGED))
    return [
        Concern(artifact.repo_id, str(artifact.node), page_of(artifact), list(of_artifact(artifact, now)))
        for artifact in damaged.order_by("repo_id", "pk")[:CONCERNS_SHOWN]
    ]
