"""Whether a snapshot is whole in its own terms: every shard that an index names is part of it."""

import json
import os
import posixpath
import re
from pathlib import Path

from agent.acquire.disk.paths import Tree
from agent.acquire.plan import shown
from agent.acquire.terms import Failed, Plan

_INDEX = re.compile(r"\.safetensors\.index(\.[\w-]+)?\.json$", re.IGNORECASE)
_MAX_INDEX_BYTES = 64 * 1024 * 1024


def check_indexes(folder: Path, plan: Plan) -> None:
    """Read the indexes among the fetched files in ``folder``; ``Failed`` (manifest_refused) names the absent shard.

    Only those of safetensors: who leaves the pickled weights out often keeps their index, and nobody misses them.
    """
    planned = {file.path for file in plan.files}
    wanted = [file.path for file in plan.files if _INDEX.search(file.path)]
    if not wanted:
        return
    with Tree(folder) as tree:
        for path in wanted:
            for shard in _shards(tree, path):
                if shard not in planned:
                    raise _absent(path, shard, plan)


def _shards(tree: Tree, path: str) -> list[str]:
    try:
        found = json.loads(tree.read(path, _MAX_INDEX_BYTES))
        shards = set(found["weight_map"].values())
        if not all(isinstance(shard, str) for shard in shards):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Failed("manifest_refused", f"{shown(path)} is no index: it has no weight_map of file names.") from None
    except OSError as error:
        raise Failed("storage_error", f"{os.strerror(error.errno or 0)}: reading {shown(path)}.") from error
    return sorted(posixpath.join(posixpath.dirname(path), shard) for shard in shards)


def _absent(path: str, shard: str, plan: Plan) -> Failed:
    if plan.selection:
        why = "the order's patterns left it out. Order all shards, or leave the index out as well."
    else:
        why = "the repository does not hold it at this commit."
    return Failed("manifest_refused", f"{shown(path)} names the shard {shown(shard)}, but {why} This is no snapshot.")
