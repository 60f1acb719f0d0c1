"""JSON for people to read."""

import json

from django import template

register = template.Library()


@register.filter
def readable(value: object) -> str:
    """Text as it is; anything else as JSON, every letter as itself."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
