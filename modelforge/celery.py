"""The Celery app and its schedule of short periodic work; two schedulers at once do no harm."""

import warnings
from datetime import timedelta

from celery import Celery
from celery.schedules import schedule
from celery.signals import setup_logging, worker_ready
from django.conf import settings
from django.utils.log import configure_logging

from modelforge.configured import settings_or_end

settings_or_end()
# Celery warns of root because of pickled tasks; here a task is JSON, and whether `make up` runs as root is the user's.
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")


def every(task: str, interval: timedelta) -> dict[str, object]:
    """One entry; a run that waited longer than its interval is dropped, so that a backlog cannot pile up."""
    return {"task": task, "schedule": schedule(interval), "options": {"expires": interval.total_seconds()}}


app = Celery("modelforge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    imports=["modelforge.tasks"],
    beat_scheduler="celery.beat.Scheduler",  # keeps nothing on disk: whatever is due after a start may run at once
    beat_max_loop_interval=1,
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    worker_enable_remote_control=settings.CELERY_BROKER_URL != "filesystem://",
    task_default_queue="modelforge",
    beat_schedule={
        "sweep": every("modelforge.sweep", settings.SWEEP_INTERVAL),
        "expire leases": every("modelforge.expire_leases", settings.LEASES_LOOKED_AT),
        "thin telemetry": every("modelforge.thin_telemetry", timedelta(minutes=10)),
        "prune": every("modelforge.prune", timedelta(minutes=30)),
    },
)


@worker_ready.connect
def _sweep_at_once(**_: object) -> None:
    """After an absence the first sweep is not waited for."""
    app.send_task("modelforge.sweep", expires=settings.SWEEP_INTERVAL.total_seconds())


@setup_logging.connect
def _log_as_the_web_does(**_: object) -> None:
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
