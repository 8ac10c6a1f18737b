"""The Django app of the whole: management commands, the admin's home, health and metrics."""

from django.apps import AppConfig


class ModelForgeConfig(AppConfig):
    """ModelForge itself."""

    name = "modelforge"
    verbose_name = "ModelForge"
