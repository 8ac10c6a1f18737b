"""The agent as a process: puts the parts together, watches over its loops, and says goodbye when it is stopped."""

import logging
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable
from datetime import timedelta
from random import SystemRandom
from threading import Event, Thread, main_thread
from uuid import uuid4

from agent import __version__, config, facts, health, logs, premises, protocol, wire, worker, workshop
from agent.client import Client
from agent.clock import SystemClock
from agent.config import Config, ConfigError
from agent.gpus import Gpus
from agent.health import Health
from agent.identity import Identity, NotInvited
from agent.observer import Observer
from agent.pulse import Pulse
from agent.record import StateError
from agent.state import State
from agent.telemetry import Sampler
from agent.trouble import Trouble
from agent.trust import trust

log = logging.getLogger("agent")

GOODBYE_WITHIN = timedelta(seconds=3)
_LAST_BEAT_WITHIN = timedelta(seconds=2)  # a beat after the goodbye would read as a return
_TURNS_WITHIN = timedelta(seconds=0.5)  # a worker that has not heard by then hangs in a request
_LET_GO_WITHIN = worker.RELEASE_WITHIN + worker.TELL_WITHIN  # of the job, so that another start may go on with it
_WATCH_EVERY = timedelta(seconds=15)
_ENDINGS = (signal.SIGTERM, signal.SIGINT)

EXIT_OK, EXIT_CRASHED, EXIT_CANNOT_WRITE, EXIT_CONFIG = 0, 1, 74, 78


class Daemon:
    """The loops and who watches over them."""

    def __init__(self, settings: Config, state: State, identity: Identity) -> None:
        self.boot_id = uuid4()
        self._identity = identity
        self._stop = Event()
        self._reason = "stopped"
        self._crashed = False
        clock, rng = SystemClock(), SystemRandom()
        hostname = (settings.hostname or socket.gethostname() or "unnamed")[:255]
        self._health = Health(settings.run_dir, clock, node_id=str(identity.node_id), boot_id=str(self.boot_id))
        self._gpus = Gpus(deadline=settings.nvml_timeout)
        volumes = volumes_of(settings)
        sampler = Sampler(volumes, self._gpus)
        told = agent_facts(settings, state)
        context = trust(settings.link) if settings.link.encrypted else None
        self._goodbyes = Client(settings.link, context)
        self._observer = Observer(
            client=Client(settings.link, context),
            identity=identity,
            health=self._health,
            clock=clock,
            rng=rng,
            gather=lambda now: facts.gather(
                boot_id=self.boot_id, agent=told, hostname=hostname, volumes=volumes, gpus=self._gpus, now=now
            ),
            measure=sampler.sample,
            interval=settings.facts_interval,
        )
        self._worker = workshop.worker(
            settings,
            client=Client(settings.link, context),
            identity=identity,
            health=self._health,
            clock=clock,
            rng=rng,
            boot_id=self.boot_id,
        )
        self._pulse = Pulse(
            client=Client(settings.link, context),
            identity=identity,
            observer=self._observer,
            worker=self._worker,
            health=self._health,
            clock=clock,
            rng=rng,
            boot_id=self.boot_id,
            hostname=hostname,
            display_name=settings.display_name,
            park=settings.park,
        )

    def run(self) -> int:
        """Until a signal (exit code 0) or a crash of any loop (1)."""
        pulse = self._start("pulse", self._pulse.run)
        self._start("observer", self._observer.run)
        working = self._start("worker", self._worker.run)
        self._watch()
        self._stop.set()
        self._observer.wake()
        self._worker.wake()
        if self._crashed:
            return EXIT_CRASHED
        pulse.join(_LAST_BEAT_WITHIN.total_seconds())
        working.join(_TURNS_WITHIN.total_seconds())
        if working.is_alive() and not self._worker.release(self._goodbyes):  # its own thread is at it
            working.join(_LET_GO_WITHIN.total_seconds())
        self._say_goodbye()
        self._gpus.close()
        self._health.close()
        return EXIT_OK

    def _watch(self) -> None:
        """Wait for a signal, or for a loop that crashes or hangs."""
        while (got := signal.sigtimedwait(_ENDINGS, _WATCH_EVERY.total_seconds())) is None:
            if self._health.hangs():
                log.critical("the beat loop hangs; ending, so that a restart policy can start a fresh agent")
                self._crashed = True
                return
        self._reason = f"stopped by {signal.Signals(got.si_signo).name}"

    def _start(self, name: str, loop: Callable[[Event], None]) -> Thread:
        def top() -> None:
            try:
                loop(self._stop)
            except BaseException:  # the loop's top: half an agent is worse than none
                log.critical("the %s loop crashed", name, exc_info=True)
                self._crashed = True
                signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)  # it waits for nothing else

        thread = Thread(target=top, name=name, daemon=True)
        thread.start()
        return thread

    def _say_goodbye(self) -> None:
        """So that a planned stop reads as one; a control plane that does not answer must not delay it."""
        credential = self._identity.credential()
        if credential is None or self._health.report.last_ok_monotonic is None:
            return
        body = wire.Goodbye(boot_id=self.boot_id, reason=self._reason)
        try:
            self._goodbyes.tell(protocol.GOODBYE, bearer=credential, body=body, timeout=GOODBYE_WITHIN)
        except Trouble as trouble:
            log.warning("the goodbye was not heard: %s", trouble, extra={"code": trouble.code})
        else:
            log.info("said goodbye", extra={"reason": self._reason})


def hold_endings() -> None:
    """Keep SIGTERM and SIGINT waiting until ``Daemon.run`` takes them; to be called before any thread starts.

    A handler would run between any two steps of the main thread, in the middle of a lock that it needs itself.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)


def volumes_of(settings: Config) -> list[facts.Volume]:
    """The four named data volumes."""
    return [
        facts.Volume("state", settings.state_dir),
        facts.Volume("hf-cache", settings.hf_cache_dir),
        facts.Volume("artifacts", settings.artifact_dir),
        facts.Volume("quarantine", settings.quarantine_dir),
    ]


def agent_facts(settings: Config, state: State) -> wire.AgentFacts:
    """How this agent runs, for the node's page."""
    return wire.AgentFacts(
        version=__version__,
        protocol=protocol.VERSION,
        python=platform.python_version(),
        started_at=SystemClock().now(),
        tls_verify=settings.link.tls_verify and settings.link.verified,
        ca=settings.link.ca,
        proxy=settings.link.proxy is not None,
        state_ephemeral=state.ephemeral,
        job_types=worker.TYPES,
    )


def main(_: object = None) -> int:
    """``run``: the exit codes are those of ``python -m agent --help``."""
    hold_endings()
    try:
        settings = config.load(os.environ)
    except ConfigError as error:
        logs.set_up(level="info", form="auto")
        for fault in error.faults:
            log.critical("configuration: %s", fault)
        return EXIT_CONFIG
    logs.set_up(level=settings.log_level, form=settings.log_format)
    for warning in settings.warnings:
        log.warning("%s", warning)
    if not settings.link.verified:
        log.warning("TLS is not verified: whoever sits on the way can read and take over this node's credential")
    refused = premises.faults(volumes_of(settings), allow_ephemeral=settings.allow_ephemeral_state)
    for reason in refused:
        log.critical("%s", reason)
    if refused:
        return refused[0].exit_code
    state = State(settings.state_dir)
    try:
        state.prepare(allow_ephemeral=settings.allow_ephemeral_state)
        state.lock()
        identity = Identity(state, settings.token)
        health.make_folder(settings.run_dir)
    except StateError as error:
        log.critical("%s", error)
        return error.exit_code
    except NotInvited as error:
        log.critical("%s", error)
        return EXIT_CONFIG
    except OSError as error:
        log.critical("%s cannot be written (%s); set %s to another.", settings.run_dir, error, config.RUN_DIR)
        return EXIT_CANNOT_WRITE
    extra = {"version": __version__, "node_id": str(identity.node_id), "control_plane": settings.link.url}
    log.info("agent starts", extra=extra)
    code = Daemon(settings, state, identity).run()
    log.info("agent ends", extra={"exit_code": code})
    sys.stdout.flush()
    return code
