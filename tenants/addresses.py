"""What may be reached of the addresses that tenants give: endpoints, tools, webhooks."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from llmbroker.addresses import AddressPolicy


def address_policy() -> AddressPolicy:
    """The policy of this installation's settings. Raises ImproperlyConfigured."""
    allowed, private = settings.BROKER_ALLOWED_ADDRESSES, settings.BROKER_ALLOW_PRIVATE_ADDRESSES
    try:
        return AddressPolicy.of(allowed, private=private)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"BROKER_ALLOWED_ADDRESSES: {error}; it reads models.internal,10.1.0.0/16"
        ) from None
