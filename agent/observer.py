"""The loop that looks at this server: facts at start, on change and when asked, telemetry before a beat needs it.

It runs apart from the beats and on a connection of its own. Whatever hangs here (a driver, a dead network disk, a large
body on a slow line) cannot stop a beat.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from threading import Event, Lock

from agent import protocol, wire
from agent.backoff import Backoff
from agent.client import Client
from agent.clock import Clock
from agent.health import Health
from agent.identity import Identity
from agent.trouble import Trouble

log = logging.getLogger(__name__)

SAMPLE_LEAD = timedelta(seconds=3)
"""A sample is taken so long before the beat that carries it."""
LONGEST_LOOK = timedelta(minutes=2)
_REST = timedelta(seconds=5)
_FLOOR, _CAP = timedelta(seconds=2), timedelta(minutes=5)


class Observer:
    """Gathers and publishes. The beat loop only reads ``digest`` and ``sample`` and leaves its wishes."""

    def __init__(
        self,
        *,
        client: Client,
        identity: Identity,
        health: Health,
        clock: Clock,
        rng: Random,
        gather: Callable[[datetime], wire.Facts],
        measure: Callable[[datetime], wire.Telemetry],
        interval: timedelta,
    ) -> None:
        self._client = client
        self._identity = identity
        self._health = health
        self._clock = clock
        self._gather = gather
        self._measure = measure
        self._interval = interval.total_seconds()
        self._backoff = Backoff(floor=_FLOOR, cap=_CAP, rng=rng)
        self._lock = Lock()
        self._wake = Event()
        # Said by the beat loop:
        self._online = False
        self._wanted = False
        self._sample_at: float | None = None
        # Our own:
        self._facts: wire.Facts | None = None
        self._next_look = clock.monotonic()
        self._told_digest = ""
        self._told_at: float | None = None
        self._try_at = 0.0
        self.digest = ""
        self.sample: tuple[float, wire.Telemetry] | None = None  # when it was taken (monotonic), and what it says

    def online(self, yes: bool) -> None:
        """Whether the last beat was answered; facts are only published while it was."""
        with self._lock:
            came_back = yes and not self._online
            self._online = yes
        if came_back:
            self._wake.set()

    def want_facts(self, asked_at: float) -> None:
        """The control plane asks for the facts; ``asked_at`` is when the beat it answered left (monotonic)."""
        with self._lock:
            if self._told_at is not None and self._told_at > asked_at:
                return  # they arrived while that beat was on its way
            self._wanted = True
        self._wake.set()

    def sample_for(self, beat_at: float) -> None:
        """The beat at that monotonic instant will carry telemetry."""
        with self._lock:
            self._sample_at = beat_at - SAMPLE_LEAD.total_seconds()
        self._wake.set()

    def turn(self) -> timedelta:
        """Do what is due; returns how long nothing will be."""
        self._measure_if_due()
        self._look_if_due()
        self._publish_if_due()
        now = self._clock.monotonic()
        with self._lock:
            due = [self._next_look]
            if self._sample_at is not None:
                due.append(self._sample_at)
            if self._online and self._has_news():
                due.append(self._try_at)
        return timedelta(seconds=max(0.0, min(due) - now))

    def run(self, stop: Event) -> None:
        """Turn until ``stop``; ``wake()`` or a wish of the beat loop cuts a wait short."""
        while not stop.is_set():
            self._wake.clear()
            self._health.observer_due_in(LONGEST_LOOK)
            wait = self.turn()
            self._health.observer_due_in(wait)
            self._wake.wait(wait.total_seconds())

    def wake(self) -> None:
        """End the present wait."""
        self._wake.set()

    def _measure_if_due(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            due = self._sample_at is not None and now >= self._sample_at
            if due:
                self._sample_at = None
        if due:
            sample = self._measure(self._clock.now())
            self.sample = (self._clock.monotonic(), sample)

    def _look_if_due(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            asked = self._wanted and self._online and now >= self._try_at
        if now < self._next_look and not asked:
            return
        facts = self._gather(self._clock.now())
        self._facts = facts
        self.digest = wire.digest(facts)
        self._next_look = self._clock.monotonic() + self._interval

    def _publish_if_due(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            due = self._online and self._has_news() and now >= self._try_at
        if not due:
            return
        credential = self._identity.credential()
        if credential is None or self._facts is None:  # not joined: the beat loop says when that changes
            self._try_at = now + self._interval
            return
        digest = self.digest
        try:
            self._client.call("PUT", protocol.FACTS, bearer=credential, body=self._facts, answer=wire.FactsReply)
        except Trouble as trouble:
            wait = self._backoff.next(trouble.retry_after)
            self._try_at = self._clock.monotonic() + wait.total_seconds()
            if self._backoff.failures == 1:
                extra = {"code": trouble.code, "request_id": trouble.request_id}
                log.warning("facts could not be told: %s", trouble, extra=extra)
            self._health.observer_failed(str(trouble))
            return
        if self._backoff.failures:
            self._health.observer_failed("")
        self._backoff.reset()
        with self._lock:
            self._told_digest = digest
            self._told_at = self._clock.monotonic()
            self._wanted = False
        # Should both ends never agree about the digest, this is asked for with every beat; a look is not free.
        self._try_at = self._clock.monotonic() + _REST.total_seconds()
        log.info("facts told", extra={"facts_digest": digest[:12], "accelerators": len(self._facts.accelerators)})

    def _has_news(self) -> bool:
        return self._wanted or (self.digest != "" and self.digest != self._told_digest)
