"""Puts the worker together: its roots, its tools and its connection, as the configuration has them."""

from functools import partial
from random import Random
from threading import Event
from uuid import UUID

from agent import roots
from agent.acquire import steps
from agent.acquire.disk import partial as half_done
from agent.acquire.disk import remove
from agent.acquire.disk.quarantine import Quarantine
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub import source
from agent.acquire.task import Tools
from agent.client import Client
from agent.clock import Clock
from agent.config import Config
from agent.health import Health
from agent.identity import Identity
from agent.lookout import Lookout
from agent.roots import Ground
from agent.tidying import Tidying
from agent.worker import Worker


def worker(
    settings: Config, *, client: Client, identity: Identity, health: Health, clock: Clock, rng: Random, boot_id: UUID
) -> Worker:
    """The worker of this agent."""
    wakes = Event()
    ground = Ground(
        node_id=identity.node_id,
        artifact_dir=settings.artifact_dir,
        ephemeral_ok=settings.allow_ephemeral_state,
    )
    lookout = Lookout(
        prove=partial(roots.prove, ground=ground),
        tidying=Tidying(
            partials=remove.partials,
            weigh=half_done.lying_bytes,
            forget=remove.tidy,
            being_deleted=remove.being_deleted,
        ),
        clock=clock,
        wake=wakes.set,
    )
    return Worker(
        client=client,
        identity=identity,
        lookout=lookout,
        perform=partial(steps.perform, tools=tools(settings, clock)),
        health=health,
        clock=clock,
        rng=rng,
        boot_id=boot_id,
        wakes=wakes,
    )


def tools(settings: Config, clock: Clock) -> Tools:
    """What jobs work with."""
    return Tools(
        source=source.from_config(settings.hub),
        pace=Pace(lambda: settings.bandwidth.at(clock.now())),
        quarantine=Quarantine(
            settings.quarantine_dir,
            max_files=settings.quarantine_max_files,
            max_bytes=settings.quarantine_max_bytes,
        ),
        hf_cache=settings.hf_cache_dir,
        now=clock.now,
    )
