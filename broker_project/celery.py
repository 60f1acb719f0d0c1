"""The Celery application. The queue is a doorbell: PostgreSQL holds the truth."""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")

app = Celery("broker_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def refuse_wrong_settings(**_: Any) -> None:
    """A worker that could open no key must not start and fail one run after another."""
    from broker_project import startup  # noqa: PLC0415 - needs Django

    try:
        startup.refuse_wrong_settings()
    except ImproperlyConfigured as error:
        # Celery only logs what a handler raises, and starts all the same; but not this.
        raise SystemExit(f"Error: {error}") from None


@worker_ready.connect
def take_runs(**_: Any) -> None:
    """Runs are worked on beside Celery's pool, which only hears the bell."""
    from agents.tasks import run_worker  # noqa: PLC0415 - needs Django

    # What is loaded by now stays: the collector need not look through it over and over, and a
    # thousand runs make more objects at once than its usual threshold is meant for.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)
    run_worker().start()


@worker_shutting_down.connect
def take_no_more_runs(**_: Any) -> None:
    """Begin to hand runs over while Celery ends its own tasks."""
    from agents.tasks import run_worker  # noqa: PLC0415

    run_worker().begin_stop()


@worker_shutdown.connect
def hand_runs_over(**_: Any) -> None:
    """Wait until the last run has been left."""
    from agents.tasks import run_worker  # noqa: PLC0415

    run_worker().stop()
