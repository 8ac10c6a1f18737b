"""What the schedule starts: doors of two lines that read the clock and call an act."""

from datetime import UTC, datetime

from django.contrib.sessions.backends.db import SessionStore

from artifacts import expiry
from modelforge.celery import app
from nodes import heartbeats, holding, idempotency, telemetry


@app.task(name="modelforge.sweep")
def sweep() -> None:
    """Mark the overdue nodes."""
    heartbeats.sweep(now=datetime.now(UTC))


@app.task(name="modelforge.expire_leases")
def expire_leases() -> None:
    """Look for leases that nobody renewed, and for pauses that are over."""
    expiry.expire(now=datetime.now(UTC))


@app.task(name="modelforge.thin_telemetry")
def thin_telemetry() -> None:
    """Thin out old samples."""
    telemetry.thin(now=datetime.now(UTC))


@app.task(name="modelforge.prune")
def prune() -> None:
    """Forget answers that may no longer be replayed and sessions that ended; let go of nodes that were held back."""
    idempotency.prune(now=datetime.now(UTC))
    holding.let_go(now=datetime.now(UTC))
    SessionStore.clear_expired()
