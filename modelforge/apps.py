"""The Django app of the whole: management commands, the admin's home, health and metrics."""

import structlog
from django.apps import AppConfig
from django.conf import settings


class ModelForgeConfig(AppConfig):
    """ModelForge itself."""

    name = "modelforge"
    verbose_name = "ModelForge"

    def ready(self) -> None:
        """Tell of variables that mean nothing here: a typing error would else go unnoticed."""
        if settings.UNKNOWN_VARIABLES:
            structlog.get_logger(__name__).warning("unknown variables", names=", ".join(settings.UNKNOWN_VARIABLES))
