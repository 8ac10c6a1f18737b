"""The steps of each job, one after the other: what an order of the control plane becomes on this server's disk.

acquire    plan -> is it here already? -> the commit is told, and answered -> reuse -> guard -> fetch and verify
           -> look at the formats -> publish
verify     read every byte of a published snapshot again
remove     unpublish by one rename, then delete
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from agent import wire
from agent.acquire import places
from agent.acquire import plan as planning
from agent.acquire.content import formats, indexes
from agent.acquire.disk import audit, candidates, guard, held, partial, publish, remove, reuse, spare
from agent.acquire.disk.quarantine import Reason
from agent.acquire.fetching import fetch
from agent.acquire.hub import listing
from agent.acquire.hub.listing import Listing
from agent.acquire.task import Task, Tools
from agent.acquire.terms import Brake, Failed, Notes, Plan, PlannedFile, Tally


def perform(
    job: wire.Job,
    *,
    tools: Tools,
    brake: Brake,
    tally: Tally,
    notes: Notes,
    tell: Callable[[], None],
    still: Callable[[], None],
    look_every: timedelta = held.LOOK_EVERY,
) -> wire.Result:
    """Do the job. Raises ``Failed`` in the wire's words, or ``Stopped`` once the brake is pulled.

    ``still`` raises ``Failed`` where the root's path does not lead to what was approved; while files are begun it is
    asked at most once in ``look_every``. Before any end is told it is asked again: what a disk refuses may come of its
    being another one, and so may what was found on it.
    """
    root = Path(job.order.path)
    with held.holding(root, still, every=look_every) as hold:
        hold.check()
        task = Task(job=job, tools=tools, brake=brake, tally=tally, notes=notes, tell=tell, held=hold)
        try:
            result = _work(task)
        except OSError as error:
            brake.check()  # behind a pulled brake it is the brake's doing
            hold.outrank()
            raise places.told(error, root, "working in the storage root") from error
        except Failed:
            hold.outrank()
            raise
        hold.outrank()
        return result


def _work(task: Task) -> wire.Result:
    order = task.job.order
    if isinstance(order, wire.AcquireOrder):
        return acquire(task, order)
    if isinstance(order, wire.VerifyOrder):
        return verify_again(task, order)
    return take_away(task, order)


def acquire(task: Task, order: wire.AcquireOrder) -> wire.Result:
    """Bring a snapshot into the root, or say what it would bring."""
    tools, brake, tally = task.tools, task.brake, task.tally
    tally.phase = "plan"
    found = listing.list_files(tools.source, order.repo_id, order.commit or order.revision, brake=brake)
    tally.commit = found.commit
    if order.preflight_only:
        return task.succeeded(preflight=preflight(task, order, found))
    plan = planning.make(found, order)
    tally.bytes_total, tally.files_total = plan.bytes, len(plan.files)
    task.still()
    remove.finish_removals(task.root, task.brake)
    here = _here_already(task, order, plan)
    if here is not None:
        publish.let_read(plan, task.root)
        remove.forget(task.root, [task.job.id])
        return task.succeeded(published=here)
    publish.check_way(plan, task.root)
    tally.bytes_noted = partial.noted_bytes(task.root, task.job.id, plan)
    task.tell()  # the commit is pinned before the first byte
    task.still()
    if partial.inherit(task.root, task.job.id, plan, order.expendable):
        tally.bytes_noted = partial.noted_bytes(task.root, task.job.id, plan)
    folder = partial.take(task.root, task.job.id, plan)
    _bring(task, order, plan, folder)
    _inspect(task, order, plan, folder / places.SNAPSHOT)
    tally.phase = "publish"
    task.held.check()
    brake.check()
    published = publish.publish(
        plan,
        root=task.root,
        partial=folder,
        order=order,
        bytes_fetched=tally.bytes_fetched,
        bytes_reused=tally.bytes_reused,
        now=tools.now(),
        step=lambda step: _may_be_seen(task, step),
        known=task.known,
    )
    return task.succeeded(published=published)


def _may_be_seen(task: Task, step: str) -> None:
    """Flushing takes minutes. Once the snapshot can be seen it is published, whatever comes after."""
    if step in publish.BEFORE_IT_IS_SEEN:
        task.brake.check()
        task.still()


def preflight(task: Task, order: wire.AcquireOrder, found: Listing) -> wire.Preflight:
    """What the order would bring, and whether there is room; nothing is written."""
    files, refused = found.files, ""
    try:
        files = planning.make(found, order).files
    except Failed as failed:
        if failed.code != "manifest_refused":
            raise
        refused, files = failed.detail, planning.plausible(found.files)
    plan = Plan(repo_id=order.repo_id, commit=found.commit, files=files)
    room = guard.room(plan, order=order, root=task.root, held_bytes=0)
    largest = max(files, key=lambda file: file.size, default=None)
    return wire.Preflight(
        files=len(files),
        bytes=plan.bytes,
        largest_file=largest.path[:4096] if largest else "",
        largest_bytes=largest.size if largest else 0,
        gated=found.gated,
        fits=spare.fits(room, order, task.root),
        needed_bytes=room.needed_bytes,
        free_bytes=room.free_bytes,
        refused=refused[:1000],
    )


def verify_again(task: Task, order: wire.VerifyOrder) -> wire.Result:
    """Read every byte of a published snapshot again."""
    found = audit.verify(order, root=task.root, brake=task.brake, tally=task.tally)
    return task.succeeded(verified=found)


def take_away(task: Task, order: wire.RemoveOrder) -> wire.Result:
    """Unpublish a snapshot and delete it."""
    task.tally.phase, task.tally.commit = "remove", order.commit
    remove.finish_removals(task.root, task.brake)
    remove.remove(order, root=task.root, job_id=task.job.id, brake=task.brake)
    return task.succeeded()


def _here_already(task: Task, order: wire.AcquireOrder, plan: Plan) -> wire.Published | None:
    """The snapshot where it lies published: by its manifest, or by every byte where the order wants that."""
    there = publish.present(plan, task.root)
    if there is None or not order.reread:
        return there
    task.tally.phase, counted = "verify", task.tally.bytes_done
    found = publish.present(plan, task.root, thorough=True, brake=task.brake, tally=task.tally, known=task.known)
    if found is None:
        task.tally.add(done=counted - task.tally.bytes_done)  # it is damaged: all of it comes anew
    return found


def _bring(task: Task, order: wire.AcquireOrder, plan: Plan, folder: Path) -> None:
    """Every file of the plan into the job's folder, by link, by copy or over the network, and verified there."""
    here: reuse.Candidates = candidates.find(plan, root=task.root, hf_cache=task.tools.hf_cache)
    task.tally.phase = "guard"
    proven, here = _reuse(task, plan, folder, here, copies=False)  # no room is taken before it is counted
    held = partial.held_bytes(task.root, task.job.id, plan)
    spare.make_room(plan, order=order, root=task.root, job_id=task.job.id, held_bytes=held)
    guard.check(plan, order=order, root=task.root, held_bytes=held)
    task.tally.phase = "fetch"
    proven += _reuse(task, plan, folder, here, copies=True)[0]
    fetch.fetch(
        plan,
        partial=folder,
        source=task.tools.source,
        brake=task.brake,
        tally=task.tally,
        pace=task.tools.pace,
        mismatch=lambda file, path, digest: _quarantine(task, file, path, digest, "digest_mismatch"),
        limits=task.tools.limits,
        still=task.still,
        proven=proven,
    )


def _reuse(
    task: Task, plan: Plan, folder: Path, here: reuse.Candidates, *, copies: bool
) -> tuple[list[str], reuse.Candidates]:
    """The names of the files that came from elsewhere on this server, and what may come as a copy yet."""
    return reuse.take_all(
        plan,
        here,
        root=task.root,
        folder=folder / places.SNAPSHOT,
        brake=task.brake,
        tally=task.tally,
        still=task.still,
        copies=copies,
        known=task.known,
    )


def _inspect(task: Task, order: wire.AcquireOrder, plan: Plan, folder: Path) -> None:
    """Look for what runs when it is loaded, and for shards that are missing; such a snapshot is never published."""
    task.tally.phase = "verify"
    refused: Failed | None = None
    for file in plan.files:
        task.brake.check()
        path = folder / file.path
        try:
            formats.inspect(path, file.path, order.allow_formats)
        except Failed as failed:
            if failed.code == "manifest_refused":
                _quarantine(task, file, path, file.digest, "unsafe_format")
            refused = refused or failed
            if len(task.notes.quarantined) >= wire.MAX_QUARANTINED:
                break  # as many as can be told; there may be thousands
    if refused is not None:
        raise refused
    indexes.check_indexes(folder, plan)


def _quarantine(task: Task, file: PlannedFile, path: Path, digest: str, reason: Reason) -> None:
    """Take a file away from the models, and note it for the result."""
    order = task.job.order
    kept = task.tools.quarantine.put(
        task.job.id, path, file, digest, reason, order.repo_id, now=task.tools.now(), brake=task.brake
    )
    task.notes.quarantined.append(kept)
