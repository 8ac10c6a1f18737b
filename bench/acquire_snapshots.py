"""The snapshots that the bench brings: random bytes as safetensors and JSON, described for the stand-in Hub."""

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KIB, MIB = 1024, 1024 * 1024
_ROOM = 248  # of a safetensors header


@dataclass(frozen=True)
class Snapshot:
    """So many files of one size."""

    name: str
    files: int
    bytes_each: int

    @property
    def bytes(self) -> int:
        """Of all files."""
        return self.files * self.bytes_each

    @property
    def large(self) -> bool:
        """Whether they are weights."""
        return self.bytes_each > MIB

    def paths(self) -> list[str]:
        """By their names in the repository."""
        ending = "safetensors" if self.large else "json"
        return [f"part-{number:05}.{ending}" for number in range(self.files)]


def make(snapshot: Snapshot, folder: Path) -> None:
    """Write the files, and beside them what the Hub tells of them."""
    place = folder / snapshot.name
    place.mkdir()
    rows = [_write(place / path, snapshot) for path in snapshot.paths()]
    commit = hashlib.sha1(snapshot.name.encode(), usedforsecurity=False).hexdigest()
    told = {"commit": commit, "files": rows, "names": {row["path"]: row for row in rows}}
    (folder / f"{snapshot.name}.json").write_text(json.dumps(told))


def _write(path: Path, snapshot: Snapshot) -> dict[str, Any]:
    size = snapshot.bytes_each
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("wb") as file:
        for piece in _weights(size) if snapshot.large else [_text(size)]:
            file.write(piece)
            sha256.update(piece)
            git.update(piece)
    return {"path": path.name, "size": size, "sha256": sha256.hexdigest(), "git_sha1": git.hexdigest()}


def _weights(size: int) -> Any:
    tensor = size - 8 - _ROOM
    header = {"weight": {"dtype": "U8", "shape": [tensor], "data_offsets": [0, tensor]}}
    yield struct.pack("<Q", _ROOM) + json.dumps(header).encode().ljust(_ROOM)
    while tensor:
        piece = os.urandom(min(tensor, MIB))
        tensor -= len(piece)
        yield piece


def _text(size: int) -> bytes:
    head, tail = b'{"text": "', b'"}'
    return head + os.urandom(size).hex().encode()[: size - len(head) - len(tail)] + tail
