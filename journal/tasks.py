"""What the beat schedule has done to the journal in the background. All may run twice at once."""

from celery import shared_task
from django.utils import timezone

from journal.figures.adding_up import add_up
from journal.retention import apply_retention
from tenants.context import all_tenants


@shared_task(name="journal.add_up", ignore_result=True)
def add_up_figures() -> None:
    """Close what was lost, and bring the daily figures up to now."""
    with all_tenants("the journal's figures", routine=True):
        add_up(now=timezone.now())


@shared_task(name="journal.retention", ignore_result=True)
def retention() -> None:
    """Delete what tenants do not keep any longer."""
    with all_tenants("the journal's retention"):
        apply_retention(now=timezone.now())
