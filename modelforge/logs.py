"""Logs: JSON lines in production, human text on a terminal, never a secret."""

from typing import Any


def configure(options: dict[str, Any]) -> None:
    """Django's ``LOGGING_CONFIG``."""
