"""The admin site's pages for tenants, for the people who run the installation."""

from tenants.admin import endpoints, keys, people, tokens, users

__all__ = ["endpoints", "keys", "people", "tokens", "users"]
