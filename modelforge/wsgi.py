"""The WSGI application that the web server loads."""

import os
from datetime import UTC, datetime

import structlog
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "modelforge.settings")

application = get_wsgi_application()

from nodes import continuity  # noqa: E402 - needs the apps that the line above loads


def wake(now: datetime) -> None:
    """Before the first request: was the control plane away, and are fresh facts wanted?

    A database that is not there yet is no reason not to start: the first sweep and the first unusual beat ask again.
    """
    try:
        continuity.resume(now)
        if settings.HARDWARE_REFRESH_ON_STARTUP:
            continuity.ask_for_facts()
    except DatabaseError as fault:
        structlog.get_logger(__name__).warning("the database is not ready yet", fault=str(fault))
    finally:
        connections.close_all()  # a forked server process opens its own


wake(datetime.now(UTC))
