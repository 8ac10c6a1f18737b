"""Publishes as a process of its own that is killed, by itself and without a last word, after a named step."""

import os
import signal
import sys
from pathlib import Path

from agent.acquire.disk import publish
from tests.agent.acquire.samples import JOB, NOW, order, plan_of

FILES = {"config.json": b"{}", "d/e/model.safetensors": b"weights" * 1000}
"""What it publishes."""


def main(root: Path, last: str) -> None:
    """Publish FILES, and die once the step ``last`` is done."""

    def step(name: str) -> None:
        if name == last:
            os.kill(os.getpid(), signal.SIGKILL)

    publish.publish(
        plan_of(FILES),
        root=root,
        partial=root / ".partial" / str(JOB),
        order=order(root),
        bytes_fetched=7000,
        bytes_reused=2,
        now=NOW,
        step=step,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
