"""``manage.py create_api_key NAME --role operator``: a named key for a script, printed once."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from enrollment import keys
from enrollment.command_line import caller
from enrollment.models import ApiKey
from nodes.callers import Refused


class Command(BaseCommand):
    """Make an API key."""

    help = "Make a named API key and print it, this once, on standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        """The name, the role, and the end."""
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=[role.value for role in ApiKey.Role])
        parser.add_argument("--days", type=int, metavar="N", help="days until the key expires; never, where not given")

    def handle(self, *, name: str, role: str, days: int | None, **_: Any) -> None:
        """Make it."""
        now = datetime.now(UTC)
        try:
            expires_at = None if days is None else now + timedelta(days=days)
            _key, text = keys.create(name, ApiKey.Role(role), expires_at, by=caller(), now=now)
        except OverflowError as fault:
            raise CommandError(f"--days {days} is too far away; give at most some thousand days.") from fault
        except Refused as refused:
            raise CommandError(refused.detail) from refused
        self.stdout.write(text)
