"""What the steps of an acquisition share: the plan's files, how a job fails or stops, and how far it is."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from agent import wire

_MOST = 2**63 - 1  # on the wire; there are file systems that tell "without a bound" as 2**64 - 1


class Failed(Exception):
    """The job cannot go on: a failure in the wire's words, lasting or passing by its code."""

    def __init__(
        self,
        code: wire.FailureCode,
        detail: str,
        *,
        numbers: Mapping[str, int] = MappingProxyType({}),
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.numbers = dict(numbers)
        self.retry_after = retry_after

    def told(self) -> wire.Failure:
        """The failure as the control plane hears it."""
        wait = self.retry_after.total_seconds() if self.retry_after is not None else None
        numbers = {name: min(max(number, 0), _MOST) for name, number in self.numbers.items()}
        return wire.Failure(code=self.code, detail=self.detail[:1000], numbers=numbers, retry_after_seconds=wait)


class Stopped(Exception):
    """The job was told to stop: stopping is not failing. ``why``: "cancelled", "released" or "lease_lost"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of a snapshot: its name in the repository, its size in bytes, and the one digest that proves it."""

    path: str
    size: int
    sha256: str | None = None  # of a large (LFS) file
    git_sha1: str | None = None  # blob id of a small one: SHA-1 over "blob <size>\0" and the bytes

    @property
    def digest(self) -> str:
        """The digest that the bytes must have, hex."""
        return self.sha256 or self.git_sha1 or ""

    def hasher(self) -> "hashlib._Hash":
        """A fresh hash that ends at ``digest`` once it was fed all bytes in order."""
        if self.sha256 is not None:
            return hashlib.sha256()
        blob = hashlib.sha1(usedforsecurity=False)
        blob.update(b"blob %d\0" % self.size)
        return blob


@dataclass(frozen=True, slots=True)
class Plan:
    """A snapshot as it shall lie on disk: pinned to a commit, its files in order of their names."""

    repo_id: str
    commit: str  # 40 hex digits
    files: tuple[PlannedFile, ...]
    selection: str = ""  # digest of the order's patterns; "" for all files
    gated: bool = False

    @property
    def bytes(self) -> int:
        """Of all files together."""
        return sum(file.size for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that decides which bytes belong here."""
        rows = [[f.path, f.size, f.digest] for f in self.files]
        said = json.dumps([self.repo_id, self.commit, self.selection, rows], separators=(",", ":"))
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def snapshot(self) -> str:
        """Where it is published, below the root: models/<repository>/<commit>[.<selection>]."""
        tail = f".{self.selection[:12]}" if self.selection else ""
        return f"models/{self.repo_id}/{self.commit}{tail}"


class Brake:
    """How a running job is told to stop, from any thread; every step asks ``check()`` often.

    ``on_pull`` lets a step that sits in a blocking call be woken: it is called once, from the thread that pulls.
    """

    def __init__(self) -> None:
        self._why: str | None = None
        self._fault: Failed | None = None
        self._lock = threading.Lock()
        self._wake: set[Callable[[], None]] = set()
        self.pulled = threading.Event()

    def pull(self, why: str) -> None:
        """Stop the job: "cancelled", "released" or "lease_lost". The first reason counts."""
        self._pull(why, None)

    def fail(self, fault: Failed) -> None:
        """End the job with a failure that another thread found (a watchdog's)."""
        self._pull("failed", fault)

    def _pull(self, why: str, fault: Failed | None) -> None:
        with self._lock:
            if self._why is not None:
                return
            self._why, self._fault = why, fault
            waiting, self._wake = self._wake, set()
        self.pulled.set()
        for wake in waiting:
            wake()

    def check(self) -> None:
        """Raises ``Stopped`` (or the ``Failed`` of ``fail``) once the brake is pulled."""
        if self.pulled.is_set():
            if self._fault is not None:
                raise self._fault
            raise Stopped(self._why or "released")

    def on_pull(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Register a call that ends a blocking wait; returns how to take it back."""
        with self._lock:
            if self._why is None:
                self._wake.add(wake)
                return lambda: self._wake.discard(wake)
        wake()
        return lambda: None


@dataclass(slots=True)
class Tally:
    """How far a job is, counted from several threads; the worker reads it to tell the control plane."""

    phase: wire.Phase = "plan"
    commit: str = ""
    bytes_total: int = 0
    files_total: int = 0
    bytes_done: int = 0  # bytes of the snapshot that are here, wherever they came from; a refetch takes them back
    bytes_noted: int = 0  # that an earlier attempt left here by its own notes; told until they are counted
    bytes_fetched: int = 0  # over the network
    bytes_reused: int = 0  # from other snapshots or the Hub cache
    files_done: int = 0
    moved_at: float = field(default_factory=time.monotonic)  # last instant at which any byte landed
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def bytes_here(self) -> int:
        """Of the snapshot, as far as anybody knows; none of them need be verified."""
        return max(0, min(max(self.bytes_done, self.bytes_noted), self.bytes_total))

    def add(self, *, done: int = 0, fetched: int = 0, reused: int = 0, files: int = 0) -> None:
        """Count what landed (or, negative, what must come again)."""
        with self._lock:
            self.bytes_done += done
            self.bytes_fetched += fetched
            self.bytes_reused += reused
            self.files_done += files
            if fetched > 0:  # what lies there is counted before more of it comes
                self.bytes_noted = 0
            if done > 0 or fetched > 0:
                self.moved_at = time.monotonic()


@dataclass(slots=True)
class Notes:
    """What a job leaves to tell, whichever way it ends."""

    quarantined: list[wire.Quarantined] = field(default_factory=list)
