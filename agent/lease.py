"""How long a job is ours: measured from the instant at which we asked, so that we stop before another may start."""

from datetime import timedelta
from uuid import UUID

from agent.acquire.terms import Brake
from agent.clock import Clock


class Lease:
    """A job's lease by the monotonic clock. The control plane counts from when it heard us, which is later."""

    def __init__(self, id: UUID, length: timedelta, *, sent_at: float, clock: Clock) -> None:
        self.id = id
        self.length = length
        self._sent_at = sent_at
        self._clock = clock

    def renew(self, length: timedelta, *, sent_at: float) -> None:
        """Progress that was sent then was answered."""
        self.length, self._sent_at = length, sent_at

    @property
    def left(self) -> timedelta:
        """What is left of it; none where it is over."""
        return max(timedelta(), self.length - timedelta(seconds=self._clock.monotonic() - self._sent_at))

    @property
    def over(self) -> bool:
        """Whether another node's word may count from now on."""
        return self.left <= timedelta()


class LeasedBrake(Brake):
    """A brake that pulls itself when the lease is over, however busy or stuck everybody else is."""

    def __init__(self, lease: Lease) -> None:
        super().__init__()
        self._lease = lease

    def check(self) -> None:
        """Raises as every brake does once it is pulled, and pulls it when the lease is over."""
        if self._lease.over:
            self.pull("lease_lost")
        super().check()
