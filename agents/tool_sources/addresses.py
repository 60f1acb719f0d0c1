"""URLs of tools, as tenants give them."""

from __future__ import annotations

from tenants.addresses import address_policy
from tenants.endpoint_urls import endpoint_url


def tool_url(text: str) -> str:
    """``text`` if a tool may be there. Raises InvalidInput.

    What is checked is checked again at each connection: a name may come to mean another address.
    """
    endpoint_url(text, policy=address_policy(), param="url")
    return text  # a slash at its end means something to some servers
