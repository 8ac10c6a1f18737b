"""Brings the bytes of a plan: many connections, each byte hashed once, continued after whatever ended it before."""

import os
import threading
import time
from collections.abc import Callable, Collection
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path

from agent.acquire import places
from agent.acquire.fetching.carrier import Carrier
from agent.acquire.fetching.crew import Crew, Mismatch
from agent.acquire.fetching.ease import Ease
from agent.acquire.fetching.gate import Gate
from agent.acquire.fetching.pace import Pace
from agent.acquire.fetching.shelf import Shelf
from agent.acquire.fetching.verifier import Verifier
from agent.acquire.fetching.writeback import Writeback
from agent.acquire.hub.source import Source
from agent.acquire.line.faults import Halted
from agent.acquire.line.limits import Limits
from agent.acquire.line.redirects import Desk
from agent.acquire.line.transport import Way
from agent.acquire.line.watchdog import Watchdog
from agent.acquire.terms import Brake, Failed, Plan, Tally

_PATIENCE = timedelta(seconds=2)
"""For threads to leave once the fetch ends. Only a lookup of a name can hold one up for longer; it touches no file."""

Worker = Carrier | Verifier


def nothing() -> None:
    """All is as it was."""


def fetch(
    plan: Plan,
    *,
    partial: Path,
    source: Source,
    brake: Brake,
    tally: Tally,
    pace: Pace,
    mismatch: Mismatch,
    limits: Limits = Limits(),  # noqa: B008  frozen
    still: Callable[[], None] = nothing,
    proven: Collection[str] = (),
) -> None:
    """Bring every file of ``plan`` that ``partial/snapshot`` lacks, verified, and what was begun in ``partial/parts``.

    ``mismatch`` is given a file whose bytes were wrong twice (and their digest) to take away; ``still`` is asked before
    each file is begun and raises where the root must not be written to any more; ``proven`` names files that this very
    run has put into the snapshot, verified and counted. Raises ``Failed`` or ``Stopped``; what has landed is kept.
    """
    watchdog = Watchdog(limits.stall)
    brake.check()
    try:
        with Shelf(partial, plan) as shelf:
            crew = Crew(
                plan,
                shelf,
                limits,
                brake=brake,
                tally=tally,
                ease=Ease(tally, limits),
                still=still,
                mismatch=mismatch,
                halt=lambda: watchdog.cut_all(Halted()),
            )
            _share_out(plan, shelf, crew, tally, set(proven))
            way, gate, writeback = Way(source, limits, watchdog), Gate(limits), Writeback()
            workers: list[Worker] = [
                Verifier(crew, plan, shelf, brake=brake, limits=limits) for _ in range(limits.hashers)
            ]
            for _ in range(limits.connections):
                desk = Desk(way, plan)
                workers.append(Carrier(crew, desk, gate, writeback, pace=pace, brake=brake, tally=tally, limits=limits))
            let_go = brake.on_pull(crew.stop)
            try:
                _work(crew, workers, beside=(watchdog, writeback))
            finally:
                let_go()
                watchdog.stop()
                writeback.stop()
    except OSError as error:
        raise _told(error, plan, partial, tally) from error


def _share_out(plan: Plan, shelf: Shelf, crew: Crew, tally: Tally, proven: set[str]) -> None:
    """What an earlier run left as whole is counted, and proven while the rest comes."""
    shelf.sweep()
    pending, proofs = [], []
    for number, file in enumerate(plan.files):
        if file.path in proven:
            continue
        fd = shelf.open_whole(file)
        if fd is None:
            pending.append(number)
        else:
            os.close(fd)
            tally.add(done=file.size)
            proofs.append(number)
    crew.sign_on(pending, proofs)


def _work(crew: Crew, workers: list[Worker], *, beside: tuple[Watchdog, Writeback]) -> None:
    """All at once; returns when everything is done, and raises what ended it before."""
    threads = [
        threading.Thread(target=copy_context().run, args=(_run, worker, crew), name="fetch", daemon=True)
        for worker in workers  # what the job holds, they hold as well
    ]
    try:
        for start in (*(one.start for one in beside), *(thread.start for thread in threads)):
            start()
    except RuntimeError:  # those that run already must leave before the folder is let go
        crew.fail(Failed("storage_error", "The system gives this agent no more threads."))
    crew.wait()
    until = time.monotonic() + _PATIENCE.total_seconds()
    for thread in [thread for thread in threads if thread.ident is not None]:
        thread.join(max(0.0, until - time.monotonic()))
    crew.wind_up()


def _run(worker: Worker, crew: Crew) -> None:
    try:
        worker.run()
    except Halted:
        pass
    except BaseException as error:  # noqa: BLE001  handed to the fetching thread, which raises it
        crew.fail(error)


def _told(error: OSError, plan: Plan, partial: Path, tally: Tally) -> Failed:
    """What the disk refused. Errors of the network never come so far."""
    failed = places.told(error, partial, "writing files that are being fetched")
    failed.numbers["missing_bytes"] = max(0, plan.bytes - tally.bytes_done)
    return failed
