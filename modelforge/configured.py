"""The settings before anything else: a fault of the environment ends the process with one line and exit code 78."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

EXIT_CONFIG = 78


def settings_or_end() -> None:
    """Read them; what is wrong is told by its variable, with the remedy, and no traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "modelforge.settings")
    try:
        settings.SECRET_KEY  # noqa: B018 - the first look reads them all
    except ImproperlyConfigured as fault:
        sys.stderr.write(" ".join(str(fault).splitlines()) + "\n")  # a path may hold a line break
        sys.exit(EXIT_CONFIG)
