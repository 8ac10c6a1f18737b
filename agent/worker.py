"""The loop that works: it claims jobs, keeps the lease of the one that runs, and tells what became of it.

It runs apart from the beats and on a connection of its own. The job has a thread of its own, too, and so has each look
at the storage roots: whatever hangs there, the lease is kept or let go in time.

    a turn:  keep the lease -> take what ended -> look at the roots -> tell the result -> claim
"""

import logging
from datetime import timedelta
from random import Random
from threading import Event, Lock
from typing import get_args
from uuid import UUID

from agent import roots, wire
from agent.acquire.terms import Failed
from agent.claims import Claims
from agent.client import Client
from agent.clock import Clock
from agent.health import Health
from agent.identity import Identity
from agent.lookout import Lookout
from agent.reports import Pending, Reports
from agent.running import Perform, Running

log = logging.getLogger(__name__)

TYPES: list[str] = list(get_args(wire.JobType))
LONGEST_TURN = timedelta(minutes=3)  # three requests at the longest timeout
RELEASE_WITHIN, TELL_WITHIN = timedelta(seconds=2), timedelta(seconds=2)
"""How long a stop of the agent waits for the job, and for the control plane to hear of it."""
GIVE_UP_AFTER = timedelta(seconds=30)
"""A job that is told to stop and does not: its end is told without it, and nothing else begins until it is gone."""
HANGS_AFTER = timedelta(minutes=2)
"""A job whose file system has not answered for so long is told to stop."""
_IDLE, _BUSY = timedelta(minutes=5), timedelta(seconds=1)


class Worker:
    """One node's work. ``turn()`` does what is due and says how long nothing will be; ``run()`` is the thread."""

    def __init__(
        self,
        *,
        client: Client,
        identity: Identity,
        lookout: Lookout,
        perform: Perform,
        health: Health,
        clock: Clock,
        rng: Random,
        boot_id: UUID,
        wakes: Event,
    ) -> None:
        self._lookout = lookout
        self._perform = perform
        self._health = health
        self._clock = clock
        self._wake = wakes  # the lookout's, too
        self._reports = Reports(client=client, identity=identity, clock=clock, rng=rng)
        self._claims = Claims(
            client=client, identity=identity, lookout=lookout, clock=clock, rng=rng, boot_id=boot_id, wakes=wakes
        )
        self._running: Running | None = None
        self._stuck: Running | None = None
        self._braked_at: float | None = None
        self._hangs_since: float | None = None
        self._tidying = False  # at the last claim
        self._letting_go = Lock()  # taken once, when the agent stops

    def work(self) -> None:
        """The beat loop was told that something waits at agent/jobs/claim."""
        self._claims.work()

    def online(self, yes: bool) -> None:
        """Whether the last beat was answered."""
        self._claims.online(yes)

    def wake(self) -> None:
        """End the present wait."""
        self._wake.set()

    def run(self, stop: Event) -> None:
        """Turn until ``stop``, then let go of the job."""
        while True:
            self._wake.clear()  # before the look at stop: what is set after it ends the wait
            if stop.is_set():
                break
            self._health.worker_due_in(LONGEST_TURN)
            wait = self.turn()
            self._health.worker_due_in(wait)
            self._wake.wait(wait.total_seconds())
        self.release()

    def turn(self) -> timedelta:
        """Do what is due; returns how long nothing will be. Never raises ``Trouble``."""
        if self._claims.came_back():  # what failed while the control plane was away is tried at once
            self._reports.afresh()
        self._attend()
        self._take_ended()  # before the look: the next claim tells how full the disk is now
        self._lookout.look_if_due(self._running.job if self._running else None)
        if self._reports.deliver() is not None:
            self._claims.soon()
        self._claim_if_due()
        return self._wait()

    def release(self, over: Client | None = None) -> bool:
        """The agent stops: the job is told to, and the control plane that another start may go on.

        Done once; False where it was begun already. ``over`` is another connection, for a thread that does not wait
        until the worker's own comes back from a request.
        """
        if not self._letting_go.acquire(blocking=False):
            return False
        running = self._running
        if running is not None:
            running.brake.pull("released")
            running.join(RELEASE_WITHIN)
            result = running.result if running.ended else running.given_up()
            if result is not None:
                self._reports.pending = Pending(running.job, result)
            self._running = None
        self._reports.deliver_last(TELL_WITHIN, over)
        return True

    def _attend(self) -> None:
        running = self._running
        if running is None:
            return
        self._watch_root(running)
        if not running.ended:
            self._reports.keep(running)
            self._health.job(str(running.job.id), running.tally.phase, running.telling.percent)

    def _watch_root(self, running: Running) -> None:
        """A root that is no longer what was approved ends the job; one that does not answer does so after a while."""
        proof = self._lookout.proof_of(running.job.order.root_id)
        if proof is None or proof.fault is None:
            self._hangs_since = None
            return
        now = self._clock.monotonic()
        if proof.fault == "overdue":
            self._hangs_since = now if self._hangs_since is None else self._hangs_since
            if now - self._hangs_since < HANGS_AFTER.total_seconds():
                return
        try:
            roots.require(proof)
        except Failed as failed:
            running.brake.fail(failed)

    def _take_ended(self) -> None:
        if self._stuck is not None and not self._stuck.alive:
            self._stuck = None
            self._claims.soon()
        if self._tidying and not self._lookout.tidying:
            self._tidying = False
            self._claims.soon()
        running, now = self._running, self._clock.monotonic()
        if running is None:
            return
        if running.ended:
            self._finish(running, running.result)
        elif running.brake.pulled.is_set():
            self._braked_at = now if self._braked_at is None else self._braked_at
            if now - self._braked_at >= GIVE_UP_AFTER.total_seconds():
                log.error("the job does not stop: its file system hangs", extra={"job_id": str(running.job.id)})
                self._stuck = running
                self._finish(running, running.given_up())

    def _finish(self, running: Running, result: wire.Result | None) -> None:
        self._running = None
        self._health.job("", "", 0)
        self._lookout.soon()  # the disk is fuller or emptier than it was
        outcome = result.outcome if result else "lease_lost"
        code = result.failure.code if result and result.failure else ""
        log.info("job ended", extra={"job_id": str(running.job.id), "outcome": outcome, "code": code})
        if result is not None:
            self._reports.pending = Pending(running.job, result)
        else:
            self._claims.soon()

    def _claim_if_due(self) -> None:
        wait = self._claims.due_in()
        if wait is None or wait > timedelta() or self._letting_go.locked():
            return
        types, sent_at = self._types(), self._clock.monotonic()
        reply = self._claims.claim(types, within=self._running.lease.left / 3 if self._running else None)
        if reply is not None and reply.job is not None and types and not self._letting_go.locked():
            self._begin(reply.job, sent_at)

    def _types(self) -> list[str]:
        """What this agent would begin now; none while it is at work, or where it could not work."""
        busy = self._running is not None or self._stuck is not None or self._reports.pending is not None
        self._tidying = self._lookout.tidying
        return [] if busy or self._tidying or not self._lookout.any_proven else TYPES

    def _begin(self, job: wire.Job, sent_at: float) -> None:
        running = Running(
            job,
            sent_at=sent_at,
            perform=self._perform,
            still=self._lookout.guard(job.order.root_id, job.order.path),
            clock=self._clock,
            wake=self._wake.set,
        )
        self._braked_at = self._hangs_since = None
        self._reports.begin()
        self._lookout.watch_closely()
        kind = str(job.order.__struct_config__.tag)
        log.info("job begins", extra={"job_id": str(job.id), "type": kind, "attempt": job.attempt})
        self._running = running
        running.start()

    def _wait(self) -> timedelta:
        waits = [_IDLE, self._lookout.due_in(), self._reports.due_in(), self._claims.due_in()]
        if self._running is not None or self._stuck is not None:
            waits.append(_BUSY)
        return min(wait for wait in waits if wait is not None)
