"""The loop that beats: it joins, beats, waits as it is told, and comes back by itself from whatever went wrong.

This thread owns nothing else. It measures nothing, reads no driver, and takes telemetry only as the observer left it.
"""

import logging
from datetime import timedelta
from random import Random
from threading import Event
from uuid import UUID

from agent import __version__, backoff, protocol, wire
from agent.backoff import Backoff
from agent.client import Client
from agent.clock import Clock
from agent.health import Health
from agent.identity import Identity
from agent.observer import Observer
from agent.trouble import Refused, Trouble
from agent.worker import Worker

log = logging.getLogger(__name__)

FIRST_BEAT_WITHIN = timedelta(seconds=1)
RETRY_FLOOR, RETRY_CAP = timedelta(seconds=2), timedelta(seconds=60)
PARK_FLOOR, PARK_CAP = timedelta(seconds=30), timedelta(minutes=15)
SHORTEST_INTERVAL, LONGEST_INTERVAL = timedelta(seconds=1), timedelta(hours=1)
TELL_AGAIN_AFTER = timedelta(hours=1)
SKEW_WORTH_A_WARNING = timedelta(seconds=60)
LONGEST_TURN = timedelta(minutes=3)  # three requests (join, beat, renew) at the longest timeout
_LOOK_WHILE_PARKED = timedelta(seconds=2)


class Pulse:
    """One node's heartbeat. ``turn()`` is one beat and says how long to wait; ``run()`` is the thread."""

    def __init__(
        self,
        *,
        client: Client,
        identity: Identity,
        observer: Observer,
        worker: Worker,
        health: Health,
        clock: Clock,
        rng: Random,
        boot_id: UUID,
        hostname: str,
        display_name: str,
        park: timedelta = PARK_FLOOR,
    ) -> None:
        self._client, self._identity = client, identity
        self._observer, self._worker = observer, worker
        self._health = health
        self._clock, self._rng, self._boot_id = clock, rng, boot_id
        self._hostname, self._display_name = hostname, display_name
        self._sequence = 0
        self._interval = timedelta(seconds=15)
        self._answered_before = False
        self._transient = Backoff(floor=RETRY_FLOOR, cap=RETRY_CAP, rng=rng)
        self._parked = Backoff(floor=park, cap=PARK_CAP, rng=rng)
        self._renewal = Backoff(floor=PARK_FLOOR, cap=PARK_CAP, rng=rng)
        self._renew_at = 0.0
        self._telemetry_interval: timedelta | None = None  # not told yet
        self._telemetry_due = 0.0
        self._sample_sent_at: float | None = None
        self._told: tuple[str, float] | None = None  # the trouble that was logged last, and when
        self._down_since: float | None = None
        self._skew_told = False

    @property
    def parked(self) -> bool:
        """Whether only a person can mend what is wrong."""
        return self._parked.failures > 0

    def first_wait(self) -> timedelta:
        """A short random wait before the first beat."""
        return FIRST_BEAT_WITHIN * self._rng.random()

    def run(self, stop: Event) -> None:
        """Beat until ``stop``."""
        wait = self.first_wait()
        while not stop.is_set():
            self._health.pulse_due_in(wait)
            if self._wait(stop, wait):
                return
            self._health.pulse_due_in(LONGEST_TURN)
            wait = self.turn()

    def turn(self) -> timedelta:
        """Beat once (joining first where need be); returns the wait before the next. Never raises ``Trouble``."""
        started = self._clock.monotonic()
        try:
            reply = self._beat()
        except Trouble as trouble:
            return self._failed(trouble)
        self._warn_of_skew()
        return self._answered(reply, started)

    def _beat(self) -> wire.BeatReply:
        credential = self._identity.credential()
        if credential is None:
            credential = self._enroll()
        try:
            return self._send(credential)
        except Refused as refused:
            if not self._identity.may_enroll_again(refused):
                raise
            log.warning("%s. Trying the enrollment token that is set.", refused)
            try:
                credential = self._enroll()
            except Refused as no:
                if not no.parks:
                    raise
                log.warning("the enrollment token does not help: %s", no, extra={"code": no.code})
                raise refused from no
            return self._send(credential)

    def _enroll(self) -> str:
        self._identity.enroll(
            self._client, boot_id=self._boot_id, hostname=self._hostname, display_name=self._display_name
        )
        credential = self._identity.credential()
        assert credential is not None, "enroll() stores a credential or raises"  # noqa: S101
        return credential

    def _send(self, credential: str) -> wire.BeatReply:
        self._sequence += 1
        sample = self._due_sample()
        beat = wire.Beat(
            boot_id=self._boot_id,
            sequence=self._sequence,
            sent_at=self._clock.now(),
            agent_version=__version__,
            facts_digest=self._observer.digest,
            telemetry=sample[1] if sample else None,
        )
        reply = self._client.call("POST", protocol.HEARTBEAT, bearer=credential, body=beat, answer=wire.BeatReply)
        self._identity.accepted(credential)
        if sample and self._telemetry_interval:
            self._sample_sent_at = sample[0]
            self._telemetry_due = self._clock.monotonic() + self._telemetry_interval.total_seconds()
        return reply

    def _due_sample(self) -> tuple[float, wire.Telemetry] | None:
        """The observer's newest sample when one is due, not sent before, and not a leftover of long ago."""
        sample, now = self._observer.sample, self._clock.monotonic()
        if sample is None or self._telemetry_interval is None or sample[0] == self._sample_sent_at:
            return None
        if not self._telemetry_is_due(now) or now - sample[0] > self._telemetry_interval.total_seconds():
            return None
        return sample

    def _telemetry_is_due(self, at: float) -> bool:
        """Half a beat early is due: else jitter would make it a whole beat late every other time."""
        return at >= self._telemetry_due - self._interval.total_seconds() / 2

    def _answered(self, reply: wire.BeatReply, started: float) -> timedelta:
        told = timedelta(seconds=reply.heartbeat_interval_seconds)
        self._interval = min(max(told, SHORTEST_INTERVAL), LONGEST_INTERVAL)
        self._telemetry_interval = max(timedelta(seconds=reply.telemetry_interval_seconds), SHORTEST_INTERVAL)
        self._say_back()
        # Back before it counts as stale: after a gap of the control plane the fresh window is three intervals.
        self._transient.cap = min(RETRY_CAP, 2 * self._interval)
        self._transient.reset()
        self._parked.reset()
        self._observer.online(True)
        self._worker.online(True)
        if reply.work:
            self._worker.work()
        if reply.want_facts:
            self._observer.want_facts(started)
        if reply.renew_credential:
            self._renew()
        wait = (backoff.steady if self._answered_before else backoff.first_gap)(self._interval, self._rng)
        self._answered_before = True
        next_beat = self._clock.monotonic() + wait.total_seconds()
        if self._telemetry_is_due(next_beat):
            self._observer.sample_for(next_beat)
        self._health.answered(self._interval, wait)
        return wait

    def _failed(self, trouble: Trouble) -> timedelta:
        self._observer.online(False)
        self._worker.online(False)
        if self._down_since is None:
            self._down_since = self._clock.monotonic()
        if trouble.parks:
            self._transient.reset()
            wait = self._parked.next(trouble.retry_after)
        else:
            self._parked.reset()
            wait = self._transient.next(trouble.retry_after)
        self._say_trouble(trouble)
        self._health.failed(code=trouble.code, error=str(trouble), parked=trouble.parks, wait=wait)
        return wait

    def _renew(self) -> None:
        if self._clock.monotonic() < self._renew_at:
            return
        try:
            self._identity.renew(self._client)
        except Trouble as trouble:
            wait = self._renewal.next(trouble.retry_after)
            self._renew_at = self._clock.monotonic() + wait.total_seconds()
            log.warning("the credential could not be renewed yet: %s", trouble, extra={"code": trouble.code})
        else:
            self._renewal.reset()

    def _say_trouble(self, trouble: Trouble) -> None:
        """Once, and again only when it is another trouble or an hour has passed."""
        now = self._clock.monotonic()
        if self._told and self._told[0] == trouble.code and now - self._told[1] < TELL_AGAIN_AFTER.total_seconds():
            return
        self._told = (trouble.code, now)
        extra = {"code": trouble.code, "request_id": trouble.request_id}
        if trouble.parks:
            log.error("parked, asking again slowly until an operator mends it: %s", trouble, extra=extra)
        else:
            log.warning("%s", trouble, extra=extra)

    def _say_back(self) -> None:
        if self._down_since is not None:
            away = self._clock.monotonic() - self._down_since
            log.info("answered again after %.0f s", away, extra={"node_id": str(self._identity.node_id)})
        elif not self._answered_before:
            extra = {"node_id": str(self._identity.node_id), "interval_seconds": self._interval.total_seconds()}
            log.info("online", extra=extra)
        self._down_since = self._told = None

    def _warn_of_skew(self) -> None:
        skew = self._client.skew or timedelta()
        if abs(skew) <= SKEW_WORTH_A_WARNING:
            self._skew_told = False
        elif not self._skew_told:
            self._skew_told = True
            text = "this machine's clock differs from the control plane's by %.0f s; set it (NTP)"
            log.warning(text, skew.total_seconds())

    def _wait(self, stop: Event, wait: timedelta) -> bool:
        """Wait; True when it is time to stop. A parked agent looks whether its credential was mended meanwhile."""
        if not self.parked:
            return stop.wait(wait.total_seconds())
        until = self._clock.monotonic() + wait.total_seconds()
        while (left := until - self._clock.monotonic()) > 0:
            if stop.wait(min(left, _LOOK_WHILE_PARKED.total_seconds())):
                return True
            if self._identity.changed():
                return False
        return stop.is_set()
