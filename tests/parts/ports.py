"""Free loopback ports, and waiting for what is observable."""

import socket
import time
from collections.abc import Callable


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def until(seen: Callable[[], object], what: str, *, within: float = 60, every: float = 0.05) -> object:
    """Look at a real process from outside until ``seen`` gives something true, and give that.

    Raises:
        AssertionError: it did not within so many seconds; ``what`` says what was waited for.
    """
    deadline = time.monotonic() + within
    while True:
        found = seen()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {within:g} s: {what}")
        time.sleep(every)
