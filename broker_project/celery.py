"""The Celery application. The queue is a doorbell: messages carry ids, PostgreSQL the truth."""

import os

from celery import Celery

from broker_project.local.services import provide_services

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
provide_services()

app = Celery("broker_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
