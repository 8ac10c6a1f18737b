"""Proves that nobody changed the history: walks its chain of hashes from the first event to the head."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from nodes.audit import Broken, verify


class Command(BaseCommand):
    """Exit code 0 when every event stands as it was recorded, 1 when not; each broken place is told."""

    help = "Prove the history's chain of hashes."
    MOST = 20

    def add_arguments(self, parser: CommandParser) -> None:
        """How many broken places to tell."""
        parser.add_argument("--most", type=int, default=self.MOST, help="broken places to tell before counting only")

    def handle(self, *, most: int, **_: Any) -> None:
        """Walk, count, tell."""
        proven = broken = 0
        for step in verify():
            if isinstance(step, Broken):
                broken += 1
                if broken <= most:
                    self.stderr.write(f"event {step.position}: {step.why}")
            else:
                proven += 1
        if broken:
            places = "one place" if broken == 1 else f"{broken} places"
            self.stderr.write(f"The history is broken in {places}; {proven} events are proven.")
            raise SystemExit(1)
        self.stdout.write(f"The history is whole: {proven} events are proven.")
