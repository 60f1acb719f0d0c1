"""How long a provider asks us to wait, in all the forms that headers say it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds to wait, finite and not negative, or None where no header says so."""
    value = headers.get("Retry-After") or headers.get("retry-after")
    return float(value) if value and value.isdigit() else None
