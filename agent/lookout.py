"""Looks at the storage roots aside, so that a hanging disk holds up neither a beat, nor a lease, nor a claim."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock, Thread
from typing import Protocol
from uuid import UUID

from msgspec.structs import replace

from agent import roots, wire
from agent.acquire.terms import Failed
from agent.clock import Clock
from agent.tidying import Tidied, Tidying

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(seconds=60)
LOOK_EVERY_IN_A_JOB = timedelta(seconds=10)
_ASK_AGAIN_SECONDS = 5.0  # whether a deletion that takes its time has ended


class Prove(Protocol):
    """``roots.prove`` on this node's ground."""

    def __call__(self, order: wire.RootOrder, *, now: datetime, probe: bool) -> wire.RootProof: ...


class Lookout:
    """The roots that this node was told of, what the last look found, and whether the control plane knows it.

    Each look is a thread that ends; ``wake`` is called when it does. Only the worker's thread calls in.
    """

    def __init__(self, *, prove: Prove, tidying: Tidying, clock: Clock, wake: Callable[[], None]) -> None:
        self._prove = prove
        self._tidying = tidying
        self._clock = clock
        self._wake = wake
        self._lock = Lock()
        self._orders: tuple[wire.RootOrder, ...] = ()
        self._forget: frozenset[UUID] = frozenset()
        self._proofs: dict[UUID, tuple[wire.RootOrder, wire.RootProof]] = {}
        self._tidied: dict[UUID, Tidied] = {}
        self._heard: dict[UUID, tuple[object, ...]] = {}
        self._looking_since: float | None = None
        self._next = 0.0
        self._crash: BaseException | None = None

    def told(self, orders: Sequence[wire.RootOrder], forget: Sequence[UUID]) -> None:
        """The control plane's word: which roots there are, and whose half-done files nobody needs."""
        with self._lock:
            before, self._orders = self._orders, tuple(orders[: wire.MAX_ROOTS])
            self._settle()
            changed = any(self._found_as(order) is None for order in self._orders)
            asked_again = {order.root_id for order in orders if order.approve and order not in before}
            self._heard = {id: heard for id, heard in self._heard.items() if id not in asked_again}
            self._drop({order.root_id for order in orders})
            self._forget |= frozenset(forget)
        if changed or forget:
            self.soon()

    def soon(self) -> None:
        """The next look is due now."""
        self._next = self._clock.monotonic()

    def afresh(self) -> None:
        """Something waits at the control plane: what is not proven is looked at before its old fault is told again."""
        with self._lock:
            unsettled = any(order.approve for order in self._orders)
            unsettled = unsettled or any(proof.fault is not None for _, proof in self._proofs.values())
        if unsettled:
            self.soon()

    def watch_closely(self) -> None:
        """A job begins: looks come more often now."""
        self._next = min(self._next, self._clock.monotonic() + LOOK_EVERY_IN_A_JOB.total_seconds())

    def look_if_due(self, running: wire.Job | None) -> None:
        """Start a look where one is due and none is under way; crashes of an earlier one come out here."""
        now = self._clock.monotonic()
        with self._lock:
            if self._crash is not None:
                raise self._crash
            if self._looking_since is not None or now < self._next or not (self._orders or self._forget):
                return
            self._looking_since = now
            work = (self._orders, self._forget - ({running.id} if running else set()))
        self._next = now + (LOOK_EVERY_IN_A_JOB if running else LOOK_EVERY).total_seconds()
        try:
            Thread(target=self._top, args=(*work, running), name="roots", daemon=True).start()
        except RuntimeError:  # no thread to be had; the next turn tries again
            log.warning("the storage roots cannot be looked at: the system gives no more threads")
            with self._lock:
                self._looking_since = None

    def looking_for(self) -> timedelta | None:
        """How long the look that is under way has taken; None where there is none."""
        with self._lock:
            since = self._looking_since
        return None if since is None else timedelta(seconds=self._clock.monotonic() - since)

    @property
    def tidying(self) -> bool:
        """Whether half-done files are yet to be forgotten: a job that is tried again must not begin among them."""
        with self._lock:
            return bool(self._forget)

    def due_in(self) -> timedelta | None:
        """Until the next look; None where one is under way, or there is nothing to look at."""
        with self._lock:
            if self._looking_since is not None or not (self._orders or self._forget):
                return None
        return timedelta(seconds=max(0.0, self._next - self._clock.monotonic()))

    def found(self) -> tuple[list[wire.RootProof], list[UUID], dict[UUID, int]]:
        """The proofs, the jobs whose half-done files lie here, and what those take, as a claim tells them."""
        with self._lock:
            proofs = [proof for _, proof in self._proofs.values()]
            tidied = list(self._tidied.values())
        partials = sorted({job for one in tidied for job in one.partials})[: wire.MAX_PARTIALS]
        weights = {job: weight for one in tidied for job, weight in one.weights.items() if job in partials}
        return proofs[: wire.MAX_ROOTS], partials, weights

    def order_of(self, root_id: UUID, path: str) -> wire.RootOrder | None:
        """What the control plane said of a root; None where it told nothing of such a root at such a path."""
        with self._lock:
            return next((o for o in self._orders if o.root_id == root_id and o.path == path), None)

    def guard(self, root_id: UUID, path: str) -> Callable[[], None]:
        """What a job asks before it begins, and over and over: ``Failed`` where the root is not what was approved.

        May be asked from any thread; it looks each time.
        """

        def still() -> None:
            order = self.order_of(root_id, path)
            if order is None or order.approve:
                raise Failed("root_unverified", "This agent was told of no approved storage root at that path.")
            roots.require(self._prove(order, now=self._clock.now(), probe=False))

        return still

    def proof_of(self, root_id: UUID) -> wire.RootProof | None:
        """What the last look found there."""
        with self._lock:
            found = self._proofs.get(root_id)
        return found[1] if found else None

    @property
    def any_proven(self) -> bool:
        """Whether there is a root that a job could work in."""
        with self._lock:
            return any(proof.fault is None for _, proof in self._proofs.values())

    @property
    def has_news(self) -> bool:
        """Whether a proof says what the control plane has not heard. How full a disk is can wait for the next claim."""
        with self._lock:
            return any(_is_news(proof, self._heard.get(id)) for id, (_, proof) in self._proofs.items())

    def heard(self, proofs: Sequence[wire.RootProof]) -> None:
        """These proofs were told and answered."""
        with self._lock:
            for proof in proofs:
                if proof.root_id in self._proofs:
                    self._heard[proof.root_id] = (proof.approved, *_essence(proof))

    def _top(self, orders: Sequence[wire.RootOrder], forget: frozenset[UUID], running: wire.Job | None) -> None:
        try:
            self._look(orders, forget, running)
        except BaseException as crash:  # noqa: BLE001  handed to the worker's loop, which ends the agent with it
            self._crash = crash
        finally:
            with self._lock:
                self._looking_since = None
            self._wake()

    def _look(self, orders: Sequence[wire.RootOrder], forget: frozenset[UUID], running: wire.Job | None) -> None:
        done, busy = True, running.order.root_id if running else None
        for order in orders:
            proof = self._prove(order, now=self._clock.now(), probe=order.root_id != busy)
            tidied = Tidied([])
            if proof.fault is None:
                tidied = self._tidying.tidy(Path(order.path), forget, running)
                proof = replace(proof, partial_bytes=tidied.bytes)
            done = done and tidied.done
            with self._lock:
                if order in self._orders:  # it may have been revised meanwhile
                    self._say(order, proof)
                    self._proofs[order.root_id] = (order, proof)
                    self._tidied[order.root_id] = tidied
        with self._lock:
            self._forget -= forget if done else frozenset()
        if not done:
            self._next = min(self._next, self._clock.monotonic() + _ASK_AGAIN_SECONDS)

    def _found_as(self, order: wire.RootOrder) -> wire.RootProof | None:
        """What the last look found at a root that was ordered just so."""
        looked, proof = self._proofs.get(order.root_id, (None, None))
        return proof if looked == order else None

    def _settle(self) -> None:
        """An approval that was heard comes back with what it told: that needs no look of its own."""
        for order in self._orders:
            looked, proof = self._proofs.get(order.root_id, (None, None))
            if looked is None or proof is None or not proof.approved:
                continue
            if order == replace(looked, approve=False, device_id=proof.device_id, fsid=proof.fsid):
                self._proofs[order.root_id] = (order, replace(proof, approved=False))

    def _drop(self, known: set[UUID]) -> None:
        """What was found at roots that are no more."""
        self._proofs = {id: proof for id, proof in self._proofs.items() if id in known}
        self._tidied = {id: tidied for id, tidied in self._tidied.items() if id in known}
        self._heard = {id: heard for id, heard in self._heard.items() if id in known}

    def _say(self, order: wire.RootOrder, proof: wire.RootProof) -> None:
        before = self._proofs.get(order.root_id)
        if before is not None and before[1].fault == proof.fault and not proof.approved:
            return
        extra = {"root_id": str(order.root_id), "path": order.path}
        if proof.fault is not None:
            log.warning("storage root not proven (%s): %s", proof.fault, proof.detail, extra=extra)
        else:
            log.info("storage root %s", "approved" if proof.approved else "proven", extra=extra)


def _essence(proof: wire.RootProof) -> tuple[object, ...]:
    return proof.fault, proof.device_id, proof.fsid, proof.filesystem, proof.mount_point


def _is_news(proof: wire.RootProof, heard: tuple[object, ...] | None) -> bool:
    if heard is None:
        return True
    approved, *essence = heard
    return tuple(essence) != _essence(proof) or (proof.approved and not approved)
