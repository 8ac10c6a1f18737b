"""What a web process does before it serves: was the control plane away, and are fresh facts wanted?"""

from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, connections

from nodes import continuity

log = structlog.get_logger(__name__)


def wake(now: datetime) -> None:
    """Ask both; a database that is not there yet is no reason not to start, for the first sweep asks again."""
    try:
        continuity.resume(now)
        if settings.HARDWARE_REFRESH_ON_STARTUP:
            continuity.ask_for_facts()
    except DatabaseError as fault:
        log.warning("the database is not ready yet", fault=str(fault))
    finally:
        connections.close_all()  # a forked server process opens its own
