"""OpenAI's headers about rates: ``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MEASURES = {"requests_per_minute": "requests", "tokens_per_minute": "tokens"}


def limit_headers(standing: Mapping[str, Any]) -> dict[str, str]:
    """For one limit, with its name, limit, remaining and reset_after; others have no header."""
    measure = _MEASURES.get(str(standing["name"]))
    if measure is None:
        return {}
    headers = {
        f"x-ratelimit-limit-{measure}": str(standing["limit"]),
        f"x-ratelimit-remaining-{measure}": str(standing["remaining"]),
    }
    if standing["reset_after"] is not None:
        headers[f"x-ratelimit-reset-{measure}"] = duration(float(standing["reset_after"]))
    return headers


def duration(seconds: float) -> str:
    """As OpenAI writes it.

    >>> [duration(each) for each in (0.1204, 1, 62.5, 3600)]
    ['120ms', '1s', '1m2.5s', '1h0m0s']
    """
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{round(rest, 3):g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
