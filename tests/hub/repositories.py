"""The repositories of the stand-in Hub: commits, branches, files, and how the Hub's JSON tells of them."""

import hashlib
import itertools
import secrets
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal

from tests.hub import contents
from tests.hub.contents import Content

LARGE = ("*.safetensors", "*.bin", "*.gguf", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.npz", "*.onnx", "*.msgpack")
"""As a new repository's .gitattributes says: these are kept beside git, whatever their size."""
LARGE_BYTES = 10_000_000  # and so is everything above
MASK = "*" * 64

Gate = Literal["", "listed", "closed"]
"""Gated: anybody may list (large files' digests masked) but not fetch; or may not even list."""
Files = Mapping[str, bytes | str | Content]


class File:
    """One file of a commit."""

    def __init__(self, path: str, content: Content, *, large: bool) -> None:
        self.path, self.content, self.large = path, content, large

    @property
    def size(self) -> int:
        """In bytes."""
        return self.content.size

    @cached_property
    def sha256(self) -> str:
        """Of its bytes, hex."""
        return contents.sha256(self.content)

    @cached_property
    def pointer(self) -> bytes:
        """What git keeps in place of a large file."""
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @cached_property
    def blob_id(self) -> str:
        """What git calls what it keeps."""
        return contents.git_blob(contents.Given(self.pointer) if self.large else self.content)

    @property
    def etag(self) -> str:
        """The Hub's ETag, without quotes."""
        return self.sha256 if self.large else self.blob_id

    @cached_property
    def cdn_etag(self) -> str:
        """The CDN's own ETag, which is no digest of the bytes."""
        return f"{hashlib.md5(self.sha256.encode(), usedforsecurity=False).hexdigest()}-{self.size // 8_388_608 + 1}"


class Repository:
    """A model's repository: ``commit`` moves ``main``."""

    def __init__(self, repo_id: str, *, large: Sequence[str] = LARGE, gated: Gate = "", private: bool = False) -> None:
        self.id, self.gated, self.private = repo_id, gated, private
        self.refs: dict[str, str] = {}  # branch or tag -> commit
        self.commits: dict[str, dict[str, File]] = {}
        self._large = large
        self._numbers = itertools.count(1)
        self._salt = secrets.token_bytes(16)  # the real client remembers listings by commit: no two tests share one

    def commit(self, files: Files, *, ref: str = "main", as_commit: str = "") -> str:
        """All files of a new commit; ``ref`` now means it. Its 40 hex digits."""
        name = (
            as_commit or hashlib.sha1(b"%b %d" % (self._salt, next(self._numbers)), usedforsecurity=False).hexdigest()
        )
        self.commits[name] = {path: self._file(path, contents.content(given)) for path, given in files.items()}
        self.refs[ref] = name
        return name

    @property
    def sha(self) -> str:
        """The commit that ``main`` means."""
        return self.refs["main"]

    def files(self, commit: str = "") -> dict[str, File]:
        """The files of a commit, of ``main`` when none is named."""
        return self.commits[commit or self.sha]

    def resolve(self, revision: str) -> str | None:
        """The commit that a branch, a tag or a commit means."""
        return revision if revision in self.commits else self.refs.get(revision)

    def info(self, commit: str, *, blobs: bool, masked: bool) -> dict[str, Any]:
        """As ``GET /api/models/{id}`` tells it."""
        siblings = [_sibling(file, blobs=blobs, masked=masked) for file in self.files(commit).values()]
        return {
            "_id": "6488c8b3d9a7f1c2e4b5a697",
            "id": self.id,
            "modelId": self.id,
            "author": self.id.partition("/")[0],
            "sha": commit,
            "private": self.private,
            "gated": "manual" if self.gated else False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": ["safetensors"],
            "siblings": siblings,
        }

    def tree(self, commit: str) -> list[dict[str, Any]]:
        """As ``GET /api/models/{id}/tree/{commit}?recursive=true`` tells it: folders, too."""
        files = self.files(commit)
        folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
        rows: list[dict[str, Any]] = [
            {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}  # noqa: S324
            for path in sorted(folders)
        ]
        return rows + [_entry(file) for file in files.values()]

    def _file(self, path: str, content: Content) -> File:
        large = content.size > LARGE_BYTES or any(fnmatchcase(path, pattern) for pattern in self._large)
        return File(path, content, large=large)


def _sibling(file: File, *, blobs: bool, masked: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": file.path}
    told: dict[str, Any] = {"rfilename": file.path, "size": file.size, "blobId": file.blob_id}
    if file.large:
        sha256 = MASK if masked else file.sha256
        told["lfs"] = {"sha256": sha256, "size": file.size, "pointerSize": len(file.pointer)}
    return told


def _entry(file: File) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "file", "path": file.path, "size": file.size, "oid": file.blob_id}
    if file.large:
        told["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": len(file.pointer)}
    return told
