"""Asks the control plane for work: when it says so, when a storage root has news, and now and then by itself."""

import logging
from datetime import timedelta
from random import Random
from threading import Event, Lock
from uuid import UUID

from agent import backoff, protocol, wire
from agent.backoff import Backoff
from agent.client import Client
from agent.clock import Clock
from agent.identity import Identity
from agent.lookout import Lookout
from agent.trouble import Refused, Trouble

log = logging.getLogger(__name__)

_FLOOR, _CAP = timedelta(seconds=2), timedelta(minutes=1)
_SOONEST, _LATEST = timedelta(seconds=1), timedelta(hours=1)  # to claim again
_LOOKED_AFTER = timedelta(seconds=5)  # a claim waits so long for the proofs of a look under way


class Claims:
    """When to claim, and the claim itself. The beat loop calls ``work`` and ``online``, the worker all the rest."""

    def __init__(
        self,
        *,
        client: Client,
        identity: Identity,
        lookout: Lookout,
        clock: Clock,
        rng: Random,
        boot_id: UUID,
        wakes: Event,
    ) -> None:
        self._client = client
        self._identity = identity
        self._lookout = lookout
        self._clock = clock
        self._rng = rng
        self._boot_id = boot_id
        self._wake = wakes
        self._backoff = Backoff(floor=_FLOOR, cap=_CAP, rng=rng)
        self._lock = Lock()
        self._online = False
        self._came_back = False
        self._work = False
        self._held = False  # by a refusal that only an answered beat can lift
        self._again_at = 0.0
        self._not_before = 0.0

    def work(self) -> None:
        """The control plane says that something waits."""
        self._lookout.afresh()
        with self._lock:
            self._work = True
        self._wake.set()

    def online(self, yes: bool) -> None:
        """Whether the last beat was answered; nothing is claimed while it was not."""
        with self._lock:
            news = yes and (not self._online or self._held)
            self._came_back = self._came_back or (yes and not self._online)
            self._online = yes
            if yes:
                self._held = False
        if news:
            self._wake.set()

    def came_back(self) -> bool:
        """Whether beats are answered again since this was last asked; pauses from before are over then."""
        with self._lock:
            came_back, self._came_back = self._came_back, False
        if came_back:
            self._backoff.reset()
            self._not_before = 0.0
        return came_back

    def soon(self) -> None:
        """The next claim is due now."""
        self._again_at = self._clock.monotonic()

    def due_in(self) -> timedelta | None:
        """Until the next claim; None where something else has to happen first."""
        with self._lock:
            asked, silent = self._work, not self._online or self._held
        if silent:
            return None
        now = self._clock.monotonic()
        looking = self._lookout.looking_for()
        if looking is not None and looking < _LOOKED_AFTER:
            return _LOOKED_AFTER - looking
        due = now if asked or self._lookout.has_news else self._again_at
        return timedelta(seconds=max(0.0, due - now, self._not_before - now))

    def claim(self, types: list[str], *, within: timedelta | None) -> wire.ClaimReply | None:
        """Tell what was found at the roots and hear what waits; None where that did not succeed."""
        credential = self._identity.credential()
        if credential is None:
            return None
        with self._lock:
            self._work = False
        proofs, partials, weights = self._lookout.found()
        body = wire.Claim(boot_id=self._boot_id, types=types, proofs=proofs, partials=partials, weights=weights)
        try:
            reply = self._client.call(
                "POST", protocol.CLAIM, bearer=credential, body=body, answer=wire.ClaimReply, within=within
            )
        except Trouble as trouble:
            self._refused(trouble)
            return None
        self._backoff.reset()
        again = min(max(timedelta(seconds=reply.look_again_seconds), _SOONEST), _LATEST)
        self._again_at = self._clock.monotonic() + backoff.steady(again, self._rng).total_seconds()
        self._lookout.heard(proofs)
        self._lookout.told(reply.roots, reply.forget)
        return reply

    def _refused(self, trouble: Trouble) -> None:
        """What waited still does. A refusal holds until a beat is answered again: it is the beats that park."""
        if not self._backoff.failures:
            extra = {"code": trouble.code, "request_id": trouble.request_id}
            log.warning("jobs could not be asked for: %s", trouble, extra=extra)
        wait = self._backoff.next(trouble.retry_after)
        self._not_before = self._clock.monotonic() + wait.total_seconds()
        with self._lock:
            self._work = True
            self._held = isinstance(trouble, Refused) and trouble.parks
