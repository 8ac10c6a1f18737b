"""The bounds of a fetch: how much at once, how patient, how often again."""

from dataclasses import dataclass
from datetime import timedelta

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one job; tests pass shorter ones."""

    connections: int = 8  # that bring bytes at one time
    eased_connections: int = 3  # at least, while this machine is slower than the line
    fast_bytes_per_second: float = 200e6  # of all connections; below it the line is never faster than we are
    ease_every: timedelta = timedelta(seconds=0.1)  # is looked at how fast that is
    open_files: int = 32
    segment_bytes: int = 16 * MIB  # asked for at once
    share_bytes: int = 2 * MIB  # at least, that a connection with nothing to do takes off another's segment
    note_every: timedelta = timedelta(seconds=2)  # what came since then, or a segment, a crash costs each connection
    ahead_bytes: int = 192 * MIB  # of one file that may lie here and wait to be hashed; more than all connections bring
    chunk_bytes: int = MIB  # that a connection holds in memory
    hashers: int = 2  # threads that read again what came out of order
    connect: timedelta = timedelta(seconds=10)
    stall: timedelta = timedelta(seconds=60)  # without a byte, or without the head of an answer
    slowest_bytes_per_second: float = 1024.0  # over ``drip``: below that it is no download
    drip: timedelta = timedelta(minutes=2)
    tries: int = 8  # for each segment
    backoff_floor: timedelta = timedelta(seconds=0.5)
    backoff_cap: timedelta = timedelta(seconds=30)
    longest_hold: timedelta = timedelta(seconds=60)  # that a 429 may ask for; longer ends the attempt
    redirects: int = 5
