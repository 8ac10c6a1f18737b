"""Acts that begin at the same instant, each in a thread with a connection and transactions of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connections

from nodes.callers import Refused

Outcome = object
"""What a racer brought home: its act's result, or the code it was refused with."""


def race(*acts: Callable[[], object]) -> list[Outcome]:
    """Let all acts begin at the same instant; what each brought home, in order."""
    start = Barrier(len(acts))

    def run(act: Callable[[], object]) -> Outcome:
        try:
            start.wait(timeout=30)
            return act()
        except Refused as refusal:
            return refusal.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))
