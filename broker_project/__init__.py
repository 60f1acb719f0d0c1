"""The Django project: settings, entry points, and composition.py, which joins the parts."""

from broker_project.celery import app as celery_app

__all__ = ["celery_app"]
