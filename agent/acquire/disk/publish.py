"""Makes a verified snapshot visible: flushed, read-only, listed by its manifest, then moved by one rename."""

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from agent import wire
from agent.acquire import places
from agent.acquire.disk import access, audit, manifest, remove
from agent.acquire.disk.known import Known
from agent.acquire.disk.paths import Tree
from agent.acquire.plan import shown
from agent.acquire.terms import Brake, Failed, Plan, PlannedFile, Tally

_FEW = 64  # files; more of them are flushed with the whole file system, in one call

Step = Callable[[str], None]
"""Told the name of each step when it is done."""

BEFORE_IT_IS_SEEN = ("files", "manifest", "folders")
"""Steps after which nothing is published yet, nor anything replaced: what raises then leaves all as it was."""


def publish(
    plan: Plan,
    *,
    root: Path,
    partial: Path,
    order: wire.AcquireOrder,
    bytes_fetched: int,
    bytes_reused: int,
    now: datetime,
    step: Step = lambda _: None,
    known: Known | None = None,
) -> wire.Published:
    """Publish ``partial/snapshot``, every file of which was verified before.

    Broken off anywhere, either nothing is published or the whole; a second call finishes. Where the same snapshot lies
    already, whole, it is left; where a damaged one lies, this one takes its place. What the job has read there is
    ``known``.
    """
    job = places.PARTIAL + "/" + partial.name
    ready, target = f"{job}/{places.SNAPSHOT}", plan.snapshot
    with places.writing(root, "publishing the snapshot"), Tree(root) as tree:
        found = _found(tree, plan, thorough=True, known=known or Known())
        if found is None:
            content = manifest.render(plan, order, now)
            _prepare(tree, ready, plan, content, step)
            _move(tree, ready, target, aside=f"{places.REMOVED}/{partial.name}.replaced", step=step)
            found = wire.Published(
                snapshot=target,
                files=len(plan.files),
                bytes=plan.bytes,
                manifest_sha256=hashlib.sha256(content).hexdigest(),
            )
        else:
            access.open_whole(tree, target)
        if tree.stat(job) is not None:
            remove.drop(tree, job)
        remove.drop(tree, f"{places.REMOVED}/{partial.name}.replaced")
        step("dropped")
    return msgspec.structs.replace(found, bytes_fetched=bytes_fetched, bytes_reused=bytes_reused)


def check_way(plan: Plan, root: Path) -> None:
    """Raises ``Failed`` where one rename could not bring the snapshot into its place: another disk lies on the way."""
    place = plan.snapshot.split("/")[:-1]
    ways = [places.PARTIAL, *("/".join(place[:depth]) for depth in range(1, len(place) + 1))]
    with places.writing(root, "looking at the way to the snapshot's place"), Tree(root) as tree:
        own = _volume(tree.fd)
        for way in ways:
            with suppress(FileNotFoundError), tree.folder(way) as fd:
                if _volume(fd) != own:
                    raise Failed("storage_error", f"{way} is a disk or volume of its own. {_ONE_VOLUME}")


_ONE_VOLUME = (
    "A snapshot is published by one rename, which goes within one only: "
    "mount the disk at the storage root itself, or register that folder as a root of its own."
)


def _volume(fd: int) -> tuple[str, int]:
    """What a rename cannot leave: a mount, and within it a subvolume, as btrfs has them."""
    return remove.mount_of(fd), os.fstat(fd).st_dev


def present(
    plan: Plan,
    root: Path,
    *,
    thorough: bool = False,
    brake: Brake | None = None,
    tally: Tally | None = None,
    known: Known | None = None,
) -> wire.Published | None:
    """The snapshot, if it lies published already: by manifest and sizes; ``thorough`` reads every byte of it, until one
    is wrong, and ``known`` notes what was found."""
    with places.writing(root, "looking for the snapshot"), Tree(root) as tree:
        return _found(tree, plan, thorough=thorough, brake=brake, tally=tally, known=known or Known())


def let_read(plan: Plan, root: Path) -> None:
    """Let everybody read the snapshot that lies published, where an earlier agent left it to itself."""
    with places.writing(root, "letting the snapshot be read"), Tree(root) as tree:
        access.open_whole(tree, plan.snapshot)


def _found(
    tree: Tree, plan: Plan, *, thorough: bool, known: Known, brake: Brake | None = None, tally: Tally | None = None
) -> wire.Published | None:
    try:
        with tree.folder(plan.snapshot):
            pass
    except FileNotFoundError:
        return None  # a link on the way to it, or in its place, is told: nothing could be published there
    try:
        listed, _, digest = manifest.read(tree, plan.snapshot)
        whole = listed.is_of(plan) and all(_stands(tree, plan, file, known) for file in plan.files)
    except (ValueError, msgspec.MsgspecError):
        return None
    except OSError as error:
        audit.only_damage(error)
        return None
    if not whole:
        return None
    for file in plan.files if thorough else ():
        if not audit.intact(tree, f"{plan.snapshot}/{file.path}", file, brake=brake, tally=tally, known=known):
            return None
    return wire.Published(
        snapshot=plan.snapshot,
        files=len(plan.files),
        bytes=plan.bytes,
        manifest_sha256=digest,
        already_present=True,
        reread=thorough,
    )


def _stands(tree: Tree, plan: Plan, file: PlannedFile, known: Known) -> bool:
    """Whether it lies there with its size, and nobody knows better."""
    there = tree.stat(f"{plan.snapshot}/{file.path}")
    if there is None or not stat.S_ISREG(there.st_mode) or there.st_size != file.size:
        return False
    return known.right(file, there) is not False


def _prepare(tree: Tree, ready: str, plan: Plan, content: bytes, step: Step) -> None:
    """Make the folder exactly what shall be seen, and durable before anybody can see it."""
    _clear_strays(tree, ready, plan)
    few = len(plan.files) <= _FEW
    for file in plan.files:
        _settle(tree, f"{ready}/{file.path}", file.size, flush=few)
    step("files")
    tree.write(f"{ready}/{manifest.name([file.path for file in plan.files])}", content)
    step("manifest")
    for folder in [*tree.folders(ready), ""]:
        with tree.folder(f"{ready}/{folder}".rstrip("/")) as fd:
            os.fchmod(fd, 0o755)
            if few:
                os.fsync(fd)
    if not few:
        tree.flush()
    step("folders")


def _clear_strays(tree: Tree, ready: str, plan: Plan) -> None:
    """What a run that was broken off left beside the plan's files; the folder is ours alone."""
    planned = {file.path for file in plan.files}
    wanted = {path[:at] for path in planned for at, char in enumerate(path) if char == "/"}
    for path in [path for path, _ in tree.files(ready) if path not in planned]:
        tree.unlink(f"{ready}/{path}")
    for folder in [folder for folder in tree.folders(ready) if folder not in wanted]:
        tree.rmdir(f"{ready}/{folder}")


def _settle(tree: Tree, path: str, size: int, *, flush: bool) -> None:
    """One file read-only and, if so wished, flushed.

    It may have a second name: the same file in a snapshot that we published, linked instead of fetched again.
    """
    fd = tree.open(path)
    try:
        found = os.fstat(fd)
        if found.st_size != size:
            raise Failed("storage_error", f"{shown(path)} has {found.st_size} bytes instead of {size}: fetch it again.")
        if stat.S_IMODE(found.st_mode) != 0o444:
            os.fchmod(fd, 0o444)
        if flush:
            os.fsync(fd)
    finally:
        os.close(fd)


def _move(tree: Tree, ready: str, target: str, *, aside: str, step: Step) -> None:
    place = target.rpartition("/")[0]
    tree.mkdirs(place)
    access.open_way(tree, place)
    step("parents")
    if tree.stat(target) is not None:  # it is not this snapshot, or not whole: nobody may go on reading it
        remove.set_aside(tree, target, aside)
        step("replaced")
    tree.rename(ready, target)
    step("renamed")
    tree.sync(place)
    tree.sync(ready.rpartition("/")[0])
    step("synced")
