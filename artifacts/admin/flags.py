"""What is odd about a storage root, a job or an artifact, each with its meaning and its remedy."""

from collections.abc import Iterator
from datetime import datetime

from agent import wire
from artifacts import half_done, leases, remedies, standing
from artifacts.models import Artifact, Job, StorageRoot
from nodes.admin.flags import Flag, heart_of, liveness_of
from nodes.liveness import Liveness
from nodes.wording import exact, relative, size


def of_root(root: StorageRoot, now: datetime) -> Iterator[Flag]:
    """The flags of a storage root, most urgent first."""
    if root.state == StorageRoot.State.RETIRED:
        meaning = "No job runs here any more. What lies in the folder stays, and nobody watches it."
        remedy = "To use it again, register it as a new root."
        yield Flag("retired", "retired", "Retired", meaning, remedy, "neutral", urgent=False)
        return
    if root.fault:
        title, remedy = remedies.root_fault(root.fault)
        seen = f"Seen {relative(root.looked_at, now)}" if root.looked_at else "Told by its agent"
        meaning = f"{seen}. {root.fault_detail}".strip()
        yield Flag("fault", root.fault.replace("_", " "), title, f"{meaning} No job runs here.", remedy, "danger")
    elif root.state == StorageRoot.State.PENDING:
        meaning = "Its agent has not looked at the folder as it is now. No job runs here until it has."
        remedy = "Nothing: the agent looks after its next heartbeat." + _node_absent(root, now)
        yield Flag("pending", "pending", "Not proven yet", meaning, remedy, "info", urgent=False)
    if root.ceiling_bytes is not None and getattr(root, "artifact_bytes", 0) >= root.ceiling_bytes:
        meaning = f"The artifacts here reach the ceiling of {size(root.ceiling_bytes)}."
        yield Flag("full", "ceiling", "Ceiling reached", meaning, "Remove artifacts, or raise the ceiling.", "warning")


def of_job(job: Job, now: datetime, *, ahead: Job | None = None) -> Iterator[Flag]:
    """The flags of a job, most urgent first; ``ahead`` is the job that its node runs meanwhile."""
    if job.state == Job.State.FAILED:
        title, remedy = remedies.failure(job.failure_code)
        chip, open_ = job.failure_code.replace("_", " ") or "failed", job.dismissed_at is None
        yield Flag("failed", chip, title, _meaning(job), remedy, "danger" if open_ else "neutral", urgent=open_)
    if job.state == Job.State.RUNNING:
        yield from _running(job, now)
    if job.state == Job.State.QUEUED:
        yield from _waiting(job, now, ahead)
    if job.state in Job.ACTIVE and job.failure_code:
        title, remedy = remedies.failure(job.failure_code, again=True)
        spent = f"{job.spent} of {job.max_attempts} attempts are spent."
        meaning = f"{_meaning(job)} {spent}".strip()
        yield Flag("attempt", "failed before", f"Last attempt: {title}", meaning, remedy, "warning", urgent=False)
    yield from _preflight(job)
    yield from _forgetting(job, now)


def _meaning(job: Job) -> str:
    return job.failure_detail or "The agent said no more than this."


def _running(job: Job, now: datetime) -> Iterator[Flag]:
    if job.cancel_requested_at is not None:
        meaning = f"Told to stop {relative(job.cancel_requested_at, now)}; the agent stops at its next word."
        yield Flag(
            "stopping", "stopping", "Being cancelled", meaning, "Nothing: wait for the agent.", "info", urgent=False
        )
    if job.lease_expires_at is not None and job.lease_expires_at < now:
        heard = f"last heard {relative(job.progress_at, now)}" if job.progress_at else "never heard of it"
        meaning = f"Its lease ran out {relative(job.lease_expires_at, now)}; {heard}. The figures here are of then."
        remedy = "It is put back by itself, and goes on from what was fetched." + _node_absent(job, now)
        yield Flag("unheard", "not heard", "The agent is not heard", meaning, remedy, "warning")


def _waiting(job: Job, now: datetime, ahead: Job | None) -> Iterator[Flag]:
    if job.not_before is not None and job.not_before > now:
        meaning = f"It is tried again {relative(job.not_before, now)} ({exact(job.not_before)})."
        if leases.pause_after_returns(job.given_back):
            meaning = f"Its agent gave it back {job.given_back} times in a row and got no further. {meaning}"
        remedy = "Nothing, or cancel it."
        yield Flag("paused", "pausing", "Waiting for its next attempt", meaning, remedy, "info", urgent=False)
    if job.root.state != StorageRoot.State.VERIFIED:
        meaning = f"The storage root {job.root} is {job.root.get_state_display().lower()}."
        yield Flag(
            "root", "root", "Waiting for its root", meaning, "The root's page says what to do.", "warning", urgent=False
        )
    if not job.node.enabled:
        meaning = f"{job.node} is disabled."
        yield Flag("node", "node", "Waiting for its node", meaning, "Enable the node.", "warning", urgent=False)
    elif liveness_of(job.node, now) is not Liveness.ONLINE:
        meaning = f"{job.node} is not online.{_node_absent(job, now)}"
        yield Flag(
            "node", "node", "Waiting for its node", meaning, "The node's page says more.", "warning", urgent=False
        )
    elif ahead is not None:
        meaning = f"A node does one job at a time; it runs {does(ahead)} of {ahead.repo_id} now."
        yield Flag("ahead", "waits", "Waiting for another job", meaning, "Nothing.", "info", urgent=False)


def _forgetting(job: Job, now: datetime) -> Iterator[Flag]:
    """An operator wants the room of its half-done files, and nobody has seen yet that they are gone."""
    left = half_done.of(job)
    if left is None or left.asked_at is None or left.gone_at is not None:
        return
    meaning = (
        f"{left.asked_by} asked {relative(left.asked_at, now)}. They count as gone once the agent's word shows it."
    )
    if job.root.state != StorageRoot.State.VERIFIED:
        remedy = f"The storage root {job.root} is not verified, and nothing is deleted there until it is."
    elif not job.node.enabled:
        remedy = f"{job.node} is disabled, and its agent hears of nothing. Enable it."
    elif job.node.held_back_at is not None:
        remedy = f"{job.node} is held back: it asks again once it is let go."
    else:
        remedy = "Nothing: its agent deletes them with its next claim." + _node_absent(job, now)
    yield Flag(
        "forgetting", "to be deleted", "Half-done files are to be deleted", meaning, remedy, "info", urgent=False
    )


def _node_absent(subject: Job | StorageRoot, now: datetime) -> str:
    """A sentence about a node that cannot act, or nothing."""
    if liveness_of(subject.node, now) is Liveness.ONLINE:
        return ""
    heart = heart_of(subject.node)
    if heart is None or heart.last_heard_at is None:
        return f" {subject.node} was never heard."
    return f" {subject.node} was last heard {relative(heart.last_heard_at, now)}."


def _preflight(job: Job) -> Iterator[Flag]:
    told = job.preflight or {}
    if told.get("refused"):
        remedy = remedies.failure("manifest_refused")[1]
        yield Flag("refused", "refused", "It would be refused", str(told["refused"]), remedy, "warning", urgent=False)
    if told and not told.get("fits", True):
        meaning = f"It needs {size(told.get('needed_bytes'))}, and {size(told.get('free_bytes'))} are free."
        remedy = remedies.failure("insufficient_capacity")[1].removesuffix(" Then retry.")
        yield Flag("room", "no room", "It does not fit", meaning, remedy, "warning", urgent=False)
    if told.get("gated"):
        meaning = "Whoever fetches it needs a token whose account has accepted the terms."
        remedy = "See that the agent has such a token."
        yield Flag("gated", "gated", "The repository is gated", meaning, remedy, "info", urgent=False)


def of_artifact(artifact: Artifact, now: datetime) -> Iterator[Flag]:
    """The flags of an artifact."""
    if standing.of(artifact) == standing.GONE:
        yield _gone(artifact, now)
    elif artifact.state == Artifact.State.DAMAGED:
        count = len(artifact.damaged)
        files = f"{count} file{'' if count == 1 else 's'}" if count else "The snapshot"
        meaning = f"{files} changed or missing when it was read last. It was whole on {exact(artifact.verified_at)}."
        remedy = "Remove it and order it again, and suspect the disk or whoever may write there."
        yield Flag("damaged", "damaged", "Damaged", meaning, remedy, "danger")
    elif artifact.state == Artifact.State.REMOVED:
        when = f" {relative(artifact.removed_at, now)}" if artifact.removed_at else ""
        meaning = f"It was unpublished and deleted{when}."
        yield Flag("removed", "removed", "Removed", meaning, "Order it again to have it back.", "neutral", urgent=False)
    if artifact.root.state == StorageRoot.State.UNVERIFIED and artifact.state != Artifact.State.REMOVED:
        meaning = f"The storage root {artifact.root} is unverified: whether the files are there is not known."
        yield Flag("root", "root", "Its root is unverified", meaning, "The root's page says what to do.", "warning")


def _gone(artifact: Artifact, now: datetime) -> Flag:
    """Nobody watches it any more; what was last known of it is all there is."""
    title, whose, at = "Gone with its root", f"The storage root {artifact.root}", artifact.root.retired_at
    if artifact.node.retired_at is not None:
        title, whose, at = "Gone with its node", f"The node {artifact.node}", artifact.node.retired_at
    when = f", {relative(at, now)}" if at else ""
    meaning = (
        f"{whose} was retired: nobody watches these files. Last known{when}: {artifact.get_state_display().lower()}, "
        f"every byte right on {exact(artifact.verified_at)}."
    )
    remedy = "Delete them on the server, or register the folder as a new root and order the model again: what lies "
    remedy += "there is read, and not fetched."
    return Flag("gone", "gone", title, meaning, remedy, "neutral", urgent=False)


def does(job: Job) -> str:
    """What a job does, in a word."""
    if job.type == wire.ACQUIRE and job.preflight_only:
        return "preflight"
    return remedies.TYPES.get(job.type, job.type)
