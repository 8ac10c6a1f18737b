"""The Django app of trust."""

from django.apps import AppConfig


class EnrollmentConfig(AppConfig):
    """Enrollment tokens, node credentials, API keys."""

    name = "enrollment"
    verbose_name = "Enrollment"
    default_auto_field = "django.db.models.BigAutoField"
