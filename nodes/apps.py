"""The Django app of the registry."""

from django.apps import AppConfig


class NodesConfig(AppConfig):
    """Nodes, accelerators, volumes, telemetry, history."""

    name = "nodes"
    verbose_name = "Compute nodes"
    default_auto_field = "django.db.models.BigAutoField"
