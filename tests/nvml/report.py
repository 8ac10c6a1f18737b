"""Speaks for a process that runs the agent's Gpus on the stand-in: commands on stdin, JSON lines on stdout.

NVML belongs to a whole process, so each test brings its own. Commands: ``facts``, ``telemetry``, ``close``,
``advance SECONDS`` (of the clock that Gpus was given), ``cycles N`` (of telemetry), ``process`` (descriptors, memory).
"""

import os
import re
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from agent.gpus import Gpus


class Clock:
    """The real clock, that a test can also put forward."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def process() -> dict[str, int]:
    status = Path("/proc/self/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    return {"descriptors": len(os.listdir("/proc/self/fd")), "resident_kib": int(resident[1])}


def main() -> None:
    deadline, root = float(sys.argv[1]), Path(sys.argv[2])
    clock = Clock()
    gpus = Gpus(deadline=timedelta(seconds=deadline), clock=clock, root=root)
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        began = time.monotonic()
        answer: Any = None
        if command == "facts":
            answer = gpus.facts()
        elif command == "telemetry":
            answer = gpus.telemetry()
        elif command == "cycles":
            answer = sorted({gpus.telemetry()[0] for _ in range(int(argument))})
        elif command == "close":
            gpus.close()
        elif command == "advance":
            clock.ahead += float(argument)
        elif command == "process":
            answer = process()
        took = time.monotonic() - began
        sys.stdout.buffer.write(msgspec.json.encode({"answer": answer, "took": took}) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
