"""``manage.py create_auditor NAME``: a person who reads, with a password asked for or read from a file."""

from enrollment.command_line import CreatePerson
from nodes.callers import Role


class Command(CreatePerson):
    """Make an auditor."""

    help = "Make an auditor, who reads on the admin pages and by REST."
    role = Role.AUDITOR
