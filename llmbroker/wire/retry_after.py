"""How long a provider asks us to wait, in all the forms that headers say it.

Asked outright: ``retry-after-ms`` (milliseconds), then ``Retry-After`` (seconds, also
fractional, or an HTTP date, which is measured against the answer's own ``Date``).
Else the moment a rate limit resets: ``x-ratelimit-reset-*``, ``anthropic-ratelimit-*-reset``
and ``ratelimit-reset``, each as a duration (``6m0s``, ``120ms``), as seconds, as an epoch in
seconds or milliseconds, or as a timestamp. Of several limits the exhausted ones count (their
``…remaining…`` is 0), the latest of them; if none says so, the earliest.

What is no number, negative, infinite or NaN says nothing; a moment in the past is 0. Nothing
is longer than seven days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 7 * 24 * 3600.0
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|us|µs|ns|[dhms]))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[dhms])", re.ASCII)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_EPOCH_SECONDS = 1e9  # a larger number is no duration but a moment
_EPOCH_MILLISECONDS = 1e12


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds to wait, from 0 to seven days, or None where no header says so."""
    asked = asked_delay(headers, now=now)
    return asked if asked is not None else _reset_delay(_lowered(headers), now)


def asked_delay(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The part of ``retry_after`` that holds for any status: what ``Retry-After`` asks for."""
    fields = _lowered(headers)
    milliseconds = _number(fields.get("retry-after-ms", ""))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    value = fields.get("retry-after", "").strip()
    seconds = _number(value if value[:1].isalpha() else value.split(",")[0])
    if seconds is not None:
        return _bounded(seconds)
    moment = _http_date(value)
    if moment is None:
        return None
    sent = _http_date(fields.get("date", "")) or now
    return _bounded(max(0.0, (moment - sent).total_seconds()))


def parse_duration(text: str) -> float | None:
    """Seconds in a duration such as ``34.07s`` or ``1m30s``, or None if it is none."""
    text = text.strip()
    if not _DURATION.fullmatch(text):
        return None
    parts = _DURATION_PART.findall(text)
    return _bounded(sum(float(amount) * _UNITS.get(unit, 0.0) for amount, unit in parts))


def _reset_delay(fields: Mapping[str, str], now: datetime) -> float | None:
    exhausted: list[float] = []
    others: list[float] = []
    for name, value in fields.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        delay = _moment_or_delay(value.strip(), now)
        if delay is not None:
            remaining = fields.get(name.replace("reset", "remaining"), "").strip()
            (exhausted if remaining == "0" else others).append(delay)
    return max(exhausted) if exhausted else min(others, default=None)


def _moment_or_delay(value: str, now: datetime) -> float | None:
    number = _number(value)
    if number is None:
        return parse_duration(value) if _DURATION.fullmatch(value) else _until(value, now)
    if number >= _EPOCH_MILLISECONDS:
        return _bounded(max(0.0, number / 1000 - now.timestamp()))
    if number >= _EPOCH_SECONDS:
        return _bounded(max(0.0, number - now.timestamp()))
    return _bounded(number)


def _until(value: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _bounded(max(0.0, (moment - now).total_seconds()))


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _number(value: str) -> float | None:
    value = value.strip()
    if not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(seconds, _LONGEST)


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
