"""What the control plane orders and what the agent answers: claims, jobs, progress, results."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from agent.wire.roots import MAX_ROOTS, RootOrder, RootProof
from agent.wire.values import END, Bytes, Count, Key, Path, Said, Seconds, Text

JobType = Literal["artifact.acquire.v1", "artifact.verify.v1", "artifact.remove.v1"]
ACQUIRE: JobType = "artifact.acquire.v1"
VERIFY: JobType = "artifact.verify.v1"
REMOVE: JobType = "artifact.remove.v1"

Phase = Literal["plan", "guard", "fetch", "verify", "publish", "remove"]

LastingFailure = Literal[
    "insufficient_capacity",
    "gated_no_token",
    "gated_not_accepted",
    "token_invalid",
    "not_found",
    "root_unverified",
    "manifest_refused",
    "unsupported",
]
"""Ends the job: only a person can mend it, and ordering again is theirs."""

PassingFailure = Literal[
    "source_unavailable", "rate_limited", "stalled", "verification_failed", "lease_lost", "storage_error"
]
"""Puts the job back with a pause that doubles, until its attempts are spent; ``rate_limited`` costs no attempt."""

FailureCode = Literal[LastingFailure, PassingFailure]

Format = Literal["pickle", "code", "archive", "other"]
"""What an order may allow by name, beside the formats that only hold data."""

RepoId = Annotated[str, Meta(min_length=1, max_length=200)]
Revision = Annotated[str, Meta(min_length=1, max_length=250)]
Commit = Annotated[str, Meta(pattern=rf"^([0-9a-f]{{40}})?{END}")]  # "" before it is known
Digest = Annotated[str, Meta(max_length=64)]
Patterns = Annotated[list[Annotated[str, Meta(min_length=1, max_length=512)]], Meta(max_length=64)]

MAX_PARTIALS = 256  # that an agent tells of at once
MAX_QUARANTINED = 32  # that one job tells of


class AcquireOrder(Struct, frozen=True, kw_only=True, tag_field="type", tag=ACQUIRE):
    """Bring this snapshot into that folder."""

    root_id: UUID
    path: Path  # of the root, in the agent's environment
    repo_id: RepoId
    revision: Revision  # as it was ordered: a branch, a tag or a commit
    commit: Commit = ""  # once it is pinned, no later attempt asks for the revision again
    allow_patterns: Patterns = []  # none: all files
    ignore_patterns: Patterns = []
    allow_formats: Annotated[list[Format], Meta(max_length=8)] = []
    preflight_only: bool = False
    reread: bool = False  # a snapshot that lies there already counts only once every byte of it was read and is right
    reserve_bytes: Bytes = 0  # to be left free on the root's file system
    reserved_bytes: Bytes = 0  # still to be written there by other jobs of this node
    room_bytes: Bytes | None = None  # what the root's ceiling leaves; None: it has none
    expendable: Annotated[list[UUID], Meta(max_length=MAX_PARTIALS)] = []  # jobs whose half-done files it may use


class SnapshotOrder(Struct, frozen=True, kw_only=True):
    """Which published snapshot is meant."""

    root_id: UUID
    path: Path  # of the root, in the agent's environment
    snapshot: Path  # below the root: models/<repository>/<commit>
    repo_id: RepoId
    commit: Commit
    manifest_sha256: Digest = ""


class VerifyOrder(SnapshotOrder, frozen=True, kw_only=True, tag_field="type", tag=VERIFY):
    """Read every byte of a published snapshot again."""


class RemoveOrder(SnapshotOrder, frozen=True, kw_only=True, tag_field="type", tag=REMOVE):
    """Unpublish a snapshot, then delete it."""


class Job(Struct, frozen=True, kw_only=True):
    """One typed job under a lease; every word about it carries the lease's id."""

    id: UUID
    attempt: Count  # 1 for the first
    lease_id: UUID
    lease_seconds: Seconds  # from the moment that the claim was sent
    order: AcquireOrder | VerifyOrder | RemoveOrder


class Claim(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/jobs/claim``: what this agent can do, and what it found at its roots."""

    boot_id: UUID
    types: Annotated[list[Key], Meta(max_length=16)]  # [] asks for no job: only roots are told and heard
    proofs: Annotated[list[RootProof], Meta(max_length=MAX_ROOTS)] = []
    partials: Annotated[list[UUID], Meta(max_length=MAX_PARTIALS)] = []  # jobs whose half-done files lie here
    weights: Annotated[dict[UUID, Bytes], Meta(max_length=MAX_PARTIALS)] = {}  # what each takes, but the running job's


class ClaimReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Claim``: at most one job, the roots to watch, and the half-done files that nobody needs."""

    job: Job | None = None
    roots: list[RootOrder] = []
    forget: list[UUID] = []
    look_again_seconds: Seconds = 300.0  # claim again then, should no beat say before that there is work


class Quarantined(Struct, frozen=True, kw_only=True):
    """A file whose bytes are not what the repository says."""

    path: Path  # in the repository
    size_bytes: Bytes
    expected: Digest  # "sha256:<hex>" cut to the hex: 64 digits, or 40 of a git blob
    found: Digest
    reason: Literal["digest_mismatch", "unsafe_format", "damaged"]
    kept: bool = True  # False: there was no room, only this record remains
    location: Annotated[str, Meta(max_length=4096)] = ""  # below the quarantine volume


class Progress(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/jobs/{id}/progress``: keeps the lease, and says how far the job is."""

    lease_id: UUID
    phase: Phase
    commit: Commit = ""  # told, and answered, before the first byte is fetched
    bytes_total: Bytes = 0
    bytes_done: Bytes = 0  # of the snapshot, wherever they came from
    bytes_fetched: Bytes = 0  # over the network by this attempt
    files_total: Count = 0
    files_done: Count = 0
    bytes_per_second: Annotated[float, Meta(ge=0, le=1e15)] = 0.0
    eta_seconds: Seconds | None = None


class ProgressReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Progress``."""

    lease_seconds: Seconds  # the lease's new length, from the moment that the progress was sent
    cancel: bool = False  # stop cleanly and say so in the result


class Failure(Struct, frozen=True, kw_only=True):
    """Why a job ended without what was ordered."""

    code: FailureCode
    detail: Said
    numbers: Annotated[dict[Key, Bytes], Meta(max_length=16)] = {}  # such as needed_bytes and free_bytes
    retry_after_seconds: Seconds | None = None  # told by the source


class Preflight(Struct, frozen=True, kw_only=True):
    """What an order would bring, and whether there is room."""

    files: Count
    bytes: Bytes
    largest_file: Annotated[str, Meta(max_length=4096)] = ""
    largest_bytes: Bytes = 0
    gated: bool = False
    fits: bool = True
    needed_bytes: Bytes = 0  # still to be written, reserve and other jobs included
    free_bytes: Bytes = 0
    refused: Said = ""  # why the manifest would be refused; "" where it would not


class Published(Struct, frozen=True, kw_only=True):
    """A snapshot that lies whole and verified in its root."""

    snapshot: Path  # below the root
    files: Count
    bytes: Bytes
    manifest_sha256: Digest
    already_present: bool = False
    reread: bool = False  # it lay there already, and every byte of it was read and is right
    bytes_fetched: Bytes = 0  # over the network by the last attempt
    bytes_reused: Bytes = 0  # from other snapshots or the Hub cache


class Verified(Struct, frozen=True, kw_only=True):
    """What reading a published snapshot again found."""

    files: Count
    bytes: Bytes
    damaged: Annotated[list[Path], Meta(max_length=100)] = []  # changed or missing
    missing: bool = False  # there is no such snapshot


class Result(Struct, frozen=True, kw_only=True):
    """Body of ``POST agent/jobs/{id}/result``: told until it is answered, and it counts once."""

    lease_id: UUID
    outcome: Literal["succeeded", "failed", "cancelled", "released"]  # released: the agent stops, another may go on
    commit: Commit = ""
    failure: Failure | None = None
    preflight: Preflight | None = None
    published: Published | None = None
    verified: Verified | None = None
    quarantined: Annotated[list[Quarantined], Meta(max_length=MAX_QUARANTINED)] = []

    def __post_init__(self) -> None:
        if (self.failure is not None) != (self.outcome == "failed"):
            raise ValueError("a failed result says why, and no other does")


class ResultReply(Struct, frozen=True, kw_only=True):
    """Answer to ``Result``: where the job stands now."""

    state: Text
