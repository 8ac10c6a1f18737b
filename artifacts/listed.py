"""Storage roots, jobs and artifacts as lists show them, with what belongs to each in the same query."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Replace
from django.db.models.lookups import Exact

from agent import wire
from artifacts import standing
from artifacts.models import Artifact, HalfDone, Job, StorageRoot

CONCERNS_FOR = timedelta(days=7)
"""So long a failed job is something to look at, unless it was dismissed or another one took its place."""


def roots() -> QuerySet[StorageRoot]:
    """Storage roots with their nodes, what lies in them, and what jobs will still write."""
    kept = Artifact.objects.filter(standing.HERE, root=OuterRef("pk")).order_by().values("root")
    jobs = Job.objects.filter(root=OuterRef("pk"), state__in=Job.ACTIVE).order_by().values("root")
    writing = Job.objects.filter(state__in=Job.ACTIVE, type=wire.ACQUIRE, preflight_only=False).order_by()
    promised = writing.filter(root=OuterRef("pk"))
    on_disk = writing.alias(known_fsid=_known("root__fsid")).filter(
        Q(root=OuterRef("pk")) | (_SAME_DISK & ~Q(root__state=StorageRoot.State.RETIRED)), node=OuterRef("node")
    )
    return (
        StorageRoot.objects.select_related("node", "node__heartbeat")
        .defer("node__facts", "node__labels")
        .alias(known_fsid=_known("fsid"))
        .annotate(
            artifacts_kept=Coalesce(Subquery(kept.annotate(n=Count("pk")).values("n")), Value(0)),
            artifact_bytes=Coalesce(Subquery(kept.annotate(n=Sum("bytes")).values("n")), Value(0)),
            reserved_bytes=_to_write(on_disk, "node"),
            promised_bytes=Coalesce(
                Subquery(promised.values("root").annotate(n=Sum("bytes_total")).values("n")), Value(0)
            ),
            active_jobs=Coalesce(Subquery(jobs.annotate(n=Count("pk")).values("n")), Value(0)),
        )
    )


def _known(fsid: str) -> Replace:
    """A file system's id; "" where it has none, which some tell as zeros."""
    return Replace(fsid, Value("0"), Value(""))


_SAME_DISK = (~Q(known_fsid="") & Q(root__fsid=OuterRef("fsid"))) | (
    (Q(known_fsid="") | Exact(OuterRef("known_fsid"), Value("")))
    & ~Q(root__device_id="")
    & Q(root__device_id=OuterRef("device_id"))
)
"""Whether a job's root lies on the outer root's file system, as ``artifacts.capacity`` decides it."""


def _to_write(jobs: QuerySet[Job], by: str) -> Coalesce:
    """What the jobs will still write, as ``artifacts.capacity`` counts it."""
    return Coalesce(Subquery(jobs.values(by).annotate(n=Sum(F("bytes_total") - F("bytes_done"))).values("n")), Value(0))


def jobs() -> QuerySet[Job]:
    """Jobs with their nodes and roots; the course, which only a job's own page draws, stays in the database."""
    return Job.objects.select_related("node", "node__heartbeat", "root", "artifact", "half_done").defer(
        "course", "node__facts", "node__labels"
    )


def half_done() -> QuerySet[HalfDone]:
    """What lies half done of jobs that failed or were cancelled, the largest first."""
    lying = HalfDone.objects.filter(gone_at=None, job__state__in=Job.RETRIABLE)
    found = lying.select_related("job", "job__node", "job__root")
    return found.defer("job__course", "job__node__facts", "job__node__labels").order_by(
        F("bytes").desc(nulls_last=True), "job_id"
    )


def artifacts() -> QuerySet[Artifact]:
    """Artifacts with their nodes and roots."""
    return Artifact.objects.select_related("node", "root").defer("node__facts", "node__labels")


def failed_of_late(now: datetime) -> QuerySet[Job]:
    """Failed jobs that somebody should look at: of the last week, not dismissed, and nothing took their place since.

    Their place is taken by a newer order of the same, and by any that brought the same snapshot into the same root.
    """
    newer = Job.objects.filter(
        root=OuterRef("root"),
        type=OuterRef("type"),
        repo_id=OuterRef("repo_id"),
        revision=OuterRef("revision"),
        selection=OuterRef("selection"),
        preflight_only=OuterRef("preflight_only"),
        created_at__gt=OuterRef("created_at"),
    )
    late = jobs().filter(state=Job.State.FAILED, finished_at__gt=now - CONCERNS_FOR, node__retired_at=None)
    standing = late.filter(dismissed_at=None).exclude(root__state=StorageRoot.State.RETIRED)
    return standing.filter(~Exists(newer), ~Exists(_done_since())).order_by("-finished_at", "id")


def _done_since() -> QuerySet[Job]:
    """Jobs that did later what the outer one failed to do; what is here fits, so it answers a preflight, too."""
    same_commit = ~Q(commit="") & Q(commit=OuterRef("commit"))
    return Job.objects.filter(
        Q(revision=OuterRef("revision")) | same_commit,
        Q(preflight_only=False) | Q(preflight_only=OuterRef("preflight_only")),
        Q(type=OuterRef("type")) | Q(type=wire.REMOVE, artifact=OuterRef("artifact")),
        state=Job.State.SUCCEEDED,
        root=OuterRef("root"),
        repo_id=OuterRef("repo_id"),
        selection=OuterRef("selection"),
        finished_at__gt=OuterRef("finished_at"),
    )


def unverified() -> QuerySet[StorageRoot]:
    """Roots of nodes in service in which no job may run."""
    return (
        roots().filter(state=StorageRoot.State.UNVERIFIED, node__retired_at=None).order_by("node__display_name", "id")
    )


def id_in(words: str) -> UUID | None:
    """The words as an id, where they are one."""
    try:
        return UUID(words.strip())
    except ValueError:
        return None


def jobs_matching(words: str) -> Q:
    """Jobs whose repository, revision, commit, node, failure or id holds the words."""
    return _matching(words, "repo_id", "revision", "commit", "node__display_name", "failure_code", "created_by")


def artifacts_matching(words: str) -> Q:
    """Artifacts whose repository, revision, commit, node, folder or id holds the words."""
    return _matching(words, "repo_id", "revision", "commit", "node__display_name", "snapshot")


def roots_matching(words: str) -> Q:
    """Roots whose paths, purpose, node or id holds the words."""
    return _matching(words, "container_path", "host_path", "purpose", "node__display_name")


def _matching(words: str, *fields: str) -> Q:
    found = Q()
    for name in fields:
        found |= Q(**{f"{name}__icontains": words})
    key = id_in(words)
    return found | Q(pk=key) if key is not None else found
