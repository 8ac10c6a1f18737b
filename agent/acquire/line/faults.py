"""What may go wrong with one request for bytes. All of these pass: the piece is asked for again, so often and no more.

Fault
├── Expired    a signed address is no longer honoured: the Hub gives another
├── Held       too many requests: wait, all of us
└── Restart    what is here cannot be continued: the file begins anew
Halted         not a fault: the fetch ends, every thread leaves what it does
"""

from datetime import timedelta

from agent import wire


class Fault(Exception):
    """The answer is of no use; ``code`` is what the job ends with once all tries are spent."""

    def __init__(self, code: wire.PassingFailure, detail: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(detail)
        self.code: wire.PassingFailure = code
        self.detail = detail
        self.retry_after = retry_after


class Expired(Fault):
    """An address that the Hub gave is no longer honoured."""

    def __init__(self, host: str, status: int) -> None:
        super().__init__("source_unavailable", f"{host} answered {status} to an address that the Hub had signed.")


class Held(Fault):
    """The source asks to wait."""

    def __init__(self, host: str, wait: timedelta) -> None:
        said = f"{host} asks to wait {wait.total_seconds():.0f} s: too many requests from this address."
        super().__init__("rate_limited", said, retry_after=wait)
        self.wait = wait


class Restart(Fault):
    """The bytes that are here cannot be continued; ``whole``: the source answers no ranges of this file."""

    def __init__(self, code: wire.PassingFailure, detail: str, *, whole: bool = False) -> None:
        super().__init__(code, detail)
        self.whole = whole


class Halted(Exception):
    """The fetch ends: another thread failed, or the brake was pulled."""
