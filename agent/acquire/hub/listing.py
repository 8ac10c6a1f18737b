"""What a repository holds at a revision: asked of the Hub, bounded in time and size, and believed only when whole."""

import re
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from agent.acquire.hub import questions, refusals
from agent.acquire.hub.refusals import Fault
from agent.acquire.hub.source import Source
from agent.acquire.terms import Brake, Failed, PlannedFile

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"(?![-/.])[^\s\\~^:?*\[\x00-\x1f\x7f]{1,250}(?<![/.])")
"""As git lets a reference be named: what breaks these rules cannot exist, and could bend the address."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one commit."""

    commit: str  # 40 hex digits
    gated: bool
    files: tuple[PlannedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often the Hub is asked, and how much of its answer is read."""

    whole: timedelta = timedelta(seconds=60)  # of one question, however the answer trickles in
    read: timedelta = timedelta(seconds=20)  # without any byte
    tries: int = 3  # of what may pass by itself
    pause: timedelta = timedelta(seconds=2)  # between them, doubling
    most_bytes: int = 64 * 1024 * 1024  # of a body: some 200,000 files


class _Said(msgspec.Struct, frozen=True):
    path: str
    size: int | None = None
    large: bool = False
    digest: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    """What the asking process prints."""

    sha: str | None = None
    gated: bool = False
    files: list[_Said] = []
    fault: Fault | None = None


def list_files(
    source: Source, repo_id: str, revision: str, *, brake: Brake | None = None, patience: Patience | None = None
) -> Listing:
    """Ask which commit the revision is and what that holds; a commit's existence is asked for too.

    Raises ``Failed`` in the words of the wire, ``Stopped`` when the brake is pulled.
    """
    patience = patience or Patience()
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision or "@{" in revision:
        raise Failed("not_found", f"No revision can be named {revision!r}: name a branch, a tag or a commit.")
    pause = patience.pause
    brake = brake or Brake()
    for tries_left in reversed(range(patience.tries)):
        try:
            return _once(source, repo_id, revision, brake=brake, patience=patience)
        except Failed as failed:
            if failed.code != "source_unavailable" or not tries_left:
                raise
        brake.pulled.wait(pause.total_seconds())
        brake.check()
        pause *= 2
    raise AssertionError("unreachable")


def _once(source: Source, repo_id: str, revision: str, *, brake: Brake, patience: Patience) -> Listing:
    until = time.monotonic() + patience.whole.total_seconds()
    question = {
        "endpoint": source.endpoint,
        "token": source.token.reveal() if source.token else "",
        "ca_file": str(source.ca_file) if source.ca_file else "",
        "proxy": source.proxy,
        "no_proxy": source.no_proxy,
        "repo_id": repo_id,
        "revision": revision,
        "within_seconds": int(patience.whole.total_seconds()) + 1,
        "read_seconds": patience.read.total_seconds(),
        "max_bytes": patience.most_bytes,
    }
    try:
        home = tempfile.TemporaryDirectory(prefix="modelforge-hub-")
    except OSError as error:
        said = f"No temporary folder can be made to ask the Hub from: {error.strerror or error}."
        raise Failed("storage_error", said) from error
    with home as folder:  # all that the library may write to
        printed = questions.ask(question, home=folder, until=until, brake=brake)
    if printed is None:
        raise Failed("source_unavailable", refusals.overdue(source, patience.whole))
    try:
        answer = msgspec.json.decode(printed, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Failed("manifest_refused", "The Hub's listing holds values of the wrong kind, or broken text.") from None
    if answer.fault is not None:
        raise refusals.failure(answer.fault, source=source, repo_id=repo_id, revision=revision, now=datetime.now(UTC))
    return _believed(answer, source, repo_id, revision)


def _believed(answer: _Answer, source: Source, repo_id: str, revision: str) -> Listing:
    commit = answer.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise Failed("manifest_refused", "The Hub's answer names no commit of 40 hexadecimal digits.")
    if _COMMIT.fullmatch(revision) and commit != revision:
        raise Failed("manifest_refused", f"Asked for the commit {revision}, the Hub answered with {commit}.")
    files = []
    for said in answer.files:
        file = _file(said)
        if file is None and answer.gated:
            raise refusals.gated(source, repo_id)  # sizes and digests are masked for whom access is not granted
        if file is None:
            raise Failed(
                "manifest_refused",
                f"The listing gives no size or no digest for {ascii(said.path)[:200]}: it could not be verified.",
            )
        files.append(file)
    return Listing(commit=commit, gated=answer.gated, files=tuple(files))


def _file(said: _Said) -> PlannedFile | None:
    digest = said.digest or ""
    if said.size is None or said.size < 0:
        return None
    # The blob id of a large file is that of its pointer, and proves nothing about its bytes.
    if said.large:
        return PlannedFile(said.path, said.size, sha256=digest) if _SHA256.fullmatch(digest) else None
    return PlannedFile(said.path, said.size, git_sha1=digest) if _COMMIT.fullmatch(digest) else None
