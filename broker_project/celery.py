"""The Celery application. The queue is a doorbell: messages carry ids, PostgreSQL the truth."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")

app = Celery("broker_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def refuse_wrong_keys(**_: Any) -> None:
    """A worker that could open no key must not start and fail one run after another."""
    from broker_project.startup import refuse_wrong_keys as refuse  # noqa: PLC0415 - needs Django

    refuse()
