"""Where on this server the files of a plan may lie already: published in the root, or in the Hub library's cache."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from agent.acquire import places
from agent.acquire.disk import manifest
from agent.acquire.disk.paths import Tree
from agent.acquire.terms import Plan

_MOST = 4  # places of one file; the next may hold what the first has lost

Key = tuple[str, int]  # digest and size


def find(plan: Plan, *, root: Path, hf_cache: Path) -> dict[str, list[Path]]:
    """By the plan's names, files elsewhere that should have the same bytes, the cheapest to bring first.

    Those of this very snapshot come first: where it lies published and is damaged, most of it is whole. Nothing is
    believed yet, and what cannot be read is no candidate.
    """
    wanted = {(file.digest, file.size) for file in plan.files if file.size}
    known: dict[Key, list[Path]] = {}
    for places_of_all in (_own(plan, root), _published(root, plan.snapshot), _cached(hf_cache, {d for d, _ in wanted})):
        for key, path in places_of_all:
            if key in wanted and len(known.setdefault(key, [])) < _MOST:
                known[key].append(path)
    return {file.path: known[key] for file in plan.files if (key := (file.digest, file.size)) in known}


def _own(plan: Plan, root: Path) -> Iterator[tuple[Key, Path]]:
    """What lies in this snapshot's own place, under the files' own names and with their sizes."""
    with suppress(OSError), Tree(root) as tree:
        if tree.stat(plan.snapshot) is None:
            return
        for file in plan.files:
            with suppress(OSError):
                found = tree.stat(f"{plan.snapshot}/{file.path}")
                if found is not None and stat.S_ISREG(found.st_mode) and found.st_size == file.size:
                    yield (file.digest, file.size), root / plan.snapshot / file.path


def _published(root: Path, but: str) -> Iterator[tuple[Key, Path]]:
    """What the manifests of this root's other snapshots list."""
    with suppress(OSError), Tree(root) as tree:
        for snapshot in _snapshots(tree, places.MODELS, depth=3):
            if snapshot == but:
                continue
            with suppress(OSError, ValueError, msgspec.MsgspecError):
                listed, _, _ = manifest.read(tree, snapshot)
                for entry in listed.files:
                    yield (entry.planned.digest, entry.size), root / snapshot / entry.path


def _snapshots(tree: Tree, path: str, depth: int) -> Iterator[str]:
    """Folders below models/ that hold a manifest: models/<organisation>/<name>/<commit>, or one name less."""
    with suppress(OSError):
        names = tree.names(path)
        if manifest.NAME in names or manifest.OTHER_NAME in names:
            yield path
        elif depth:
            for name in names:
                yield from _snapshots(tree, f"{path}/{name}", depth - 1)


def _cached(hf_cache: Path, digests: set[str]) -> Iterator[tuple[Key, Path]]:
    """Blobs of the Hub library's cache, which are named by their digest; HF_HOME keeps it in hub/."""
    for cache in (hf_cache / "hub", hf_cache):
        with suppress(OSError):
            for repository in sorted(cache.iterdir()):
                if repository.name.startswith(("models--", "datasets--", "spaces--")):
                    with suppress(OSError):
                        for blob in os.listdir(repository / "blobs"):
                            if blob in digests:
                                yield from _blob(repository / "blobs" / blob)


def _blob(path: Path) -> Iterator[tuple[Key, Path]]:
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            yield (path.name, found.st_size), path
