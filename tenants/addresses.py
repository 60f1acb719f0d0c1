"""What may be reached of the addresses that tenants give: endpoints, tools, webhooks."""

from django.conf import settings

from llmbroker.addresses import AddressPolicy


def address_policy() -> AddressPolicy:
    """The policy of this installation's settings."""
    return AddressPolicy.of(
        settings.BROKER_ALLOWED_ADDRESSES, private=settings.BROKER_ALLOW_PRIVATE_ADDRESSES
    )
