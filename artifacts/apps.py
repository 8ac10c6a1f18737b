"""The Django app of artifacts."""

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    """Storage roots, jobs, artifacts."""

    name = "artifacts"
    verbose_name = "Artifacts"
    default_auto_field = "django.db.models.BigAutoField"
