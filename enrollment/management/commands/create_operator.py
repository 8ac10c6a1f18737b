"""``manage.py create_operator NAME``: a person who acts, with a password asked for or read from a file."""

from enrollment.command_line import CreatePerson
from nodes.callers import Role


class Command(CreatePerson):
    """Make an operator."""

    help = "Make an operator, who acts on the admin pages and by REST."
    role = Role.OPERATOR
