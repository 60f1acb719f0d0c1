"""What the beat schedule has done in the background."""

from celery import shared_task

from tenants.context import all_tenants
from tenants.idempotency import forget_expired


@shared_task(name="tenants.forget_idempotency_keys", ignore_result=True)
def forget_idempotency_keys() -> None:
    """Delete the keys whose time is over."""
    with all_tenants("expired idempotency keys", routine=True):
        forget_expired()
