"""The admin site's pages for tenants, for the people who run the installation."""

from tenants.admin import audit, endpoints, keys, limits, people, tokens, users

__all__ = ["audit", "endpoints", "keys", "limits", "people", "tokens", "users"]
