"""A fetch as a process of its own, to be killed: ``python -m tests.agent.acquire.killed QUESTION`` (JSON)."""

import json
import sys
from datetime import timedelta
from pathlib import Path

from agent.acquire.fetching.fetch import fetch
from agent.acquire.fetching.pace import Pace
from agent.acquire.hub.source import Source
from agent.acquire.line.limits import Limits
from agent.acquire.terms import Brake, Plan, PlannedFile, Tally


def main(question: str) -> None:
    """Fetch what is asked for."""
    asked = json.loads(question)
    fetch(
        Plan(asked["repo_id"], asked["commit"], tuple(PlannedFile(*row) for row in asked["files"])),
        partial=Path(asked["partial"]),
        source=Source(endpoint=asked["endpoint"]),
        brake=Brake(),
        tally=Tally(),
        pace=Pace(),
        limits=Limits(
            connections=asked["connections"],
            segment_bytes=asked["segment_bytes"],
            chunk_bytes=asked["chunk_bytes"],
            stall=timedelta(seconds=20),
            note_every=timedelta(seconds=asked.get("note_every", 2)),
        ),
        mismatch=lambda file, path, found: None,
    )


if __name__ == "__main__":
    main(sys.argv[1])
