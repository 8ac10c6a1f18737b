"""What the commands share: who speaks through them, and how they take a password without ever showing it."""

import getpass
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from enrollment import people
from nodes.callers import Caller, Refused, Role


def caller() -> Caller:
    """Whoever may run commands on this machine; known by the user id, for a container's user need not have a name."""
    return Caller(kind="system", role=Role.SYSTEM, id="command-line", label=f"command line, user id {os.getuid()}")


class CreatePerson(BaseCommand):
    """Make a person who may log in; the password is asked for, or read from a file, and never stands in arguments."""

    role: Role

    def add_arguments(self, parser: CommandParser) -> None:
        """The name, and where the password is."""
        parser.add_argument("name")
        parser.add_argument(
            "--password-file", metavar="PATH", help="read the password from this file, or from standard input for '-'"
        )

    def handle(self, *, name: str, password_file: str | None, **_: Any) -> None:
        """Make the person."""
        password = ask() if password_file is None else read(password_file)
        try:
            people.create(name, password, self.role, by=caller(), now=datetime.now(UTC))
        except Refused as refused:
            raise CommandError(refused.detail) from refused
        self.stdout.write(f"{name} may log in now, as {self.role.value}.")


def ask() -> str:
    """A password typed twice."""
    if not sys.stdin.isatty():
        raise CommandError("There is no terminal to ask for the password; give --password-file PATH, or - for stdin.")
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise CommandError("The two passwords differ; nobody was made.")
    return password


def read(path: str) -> str:
    """A password in a file, less the line's end."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise CommandError(f"--password-file cannot be read: {fault}") from fault
    return text.removesuffix("\n").removesuffix("\r")
