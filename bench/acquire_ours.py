"""One acquisition by the agent's own steps, in a process of its own, measured from the plan to the published folder.

``python -m bench.acquire_ours QUESTION`` with JSON: endpoint, ca_file, root, repo_id, stop_at (bytes; 0: go on to the
end), and prints JSON: seconds, bytes_fetched, rss_mib, cpu_seconds.
"""

import json
import resource
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from agent import wire
from agent.acquire import steps
from agent.acquire.disk.quarantine import Quarantine
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.task import Tools
from agent.acquire.terms import Brake, Notes, Stopped, Tally

JOB = UUID(int=1)


def main(question: str) -> None:
    """Do it, and print what it took."""
    asked = json.loads(question)
    root = Path(asked["root"])
    root.mkdir(parents=True, exist_ok=True)
    ca_file = Path(asked["ca_file"]) if asked["ca_file"] else None
    tools = Tools(
        source=Source(endpoint=asked["endpoint"], ca_file=ca_file),
        pace=Pace(),
        quarantine=Quarantine(root / "quarantine", max_files=1, max_bytes=1),
        hf_cache=root / "no-cache",
        now=lambda: datetime.now(UTC),
    )
    order = wire.AcquireOrder(root_id=uuid4(), path=str(root), repo_id=asked["repo_id"], revision="main")
    job = wire.Job(id=JOB, attempt=1, lease_id=uuid4(), lease_seconds=3600.0, order=order)
    brake, tally = Brake(), Tally()
    if asked["stop_at"]:
        threading.Thread(target=_stop, args=(brake, tally, asked["stop_at"]), daemon=True).start()
    began = time.monotonic()
    try:
        result = steps.perform(
            job, tools=tools, brake=brake, tally=tally, notes=Notes(), tell=lambda: None, still=lambda: None
        )
        assert result.published is not None
    except Stopped:
        assert asked["stop_at"]
    took = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "seconds": took,
                "bytes_fetched": tally.bytes_fetched,
                "rss_mib": used.ru_maxrss / 1024,
                "cpu_seconds": used.ru_utime + used.ru_stime,
            }
        )
    )


def _stop(brake: Brake, tally: Tally, stop_at: int) -> None:
    while tally.bytes_done < stop_at:
        time.sleep(0.002)
    brake.pull("released")


if __name__ == "__main__":
    main(sys.argv[1])
