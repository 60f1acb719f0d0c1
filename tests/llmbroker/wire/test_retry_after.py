"""How long to wait, from headers of every form."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from llmbroker.wire.retry_after import asked_delay, parse_duration, retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = 7 * 24 * 3600.0


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "delay"),
    [
        ("1", None, 1.0),
        ("0", None, 0.0),
        ("1.5", None, 1.5),
        (" 61 ", None, 61.0),
        ("86400", None, 86400.0),
        ("99999999", None, WEEK),
        ("-5", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("1e400", None, None),
        ("9" * 400, None, None),
        ("soon", None, None),
        ("", None, None),
        ("2, 5", None, 2.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", None, 30.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", None, 0.0),
        ("Thu, 99 Foo 2026", None, None),
        (None, "500", 0.5),
        ("60", "500", 0.5),
        ("60", "nan", 60.0),
        ("60", "-1", 60.0),
        (None, None, None),
    ],
)
def test_what_is_asked_for_outright(
    seconds: str | None, milliseconds: str | None, delay: float | None
) -> None:
    headers = {"Retry-After": seconds, "retry-after-ms": milliseconds}

    assert retry_after({k: v for k, v in headers.items() if v is not None}, now=NOW) == delay


def test_a_date_is_measured_by_the_clock_that_wrote_it() -> None:
    headers = {
        "retry-after": "Thu, 01 Jan 2026 08:00:30 GMT",
        "date": "Thu, 01 Jan 2026 08:00:00 GMT",
    }

    assert retry_after(headers, now=NOW) == 30.0


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("2m59.56s", 179.56),
        ("120ms", 0.12),
        ("1h30m", 5400.0),
        ("33011.382", 33011.382),
        ("1767225660", 60.0),  # an epoch in seconds
        ("1767225660000", 60.0),  # and in milliseconds
        ("1735689600", 0.0),
        ("2026-01-01T00:01:00Z", 60.0),
        ("never", None),
        ("", None),
    ],
)
def test_when_a_limit_resets(value: str, delay: float | None) -> None:
    assert retry_after({"X-RateLimit-Reset-Requests": value}, now=NOW) == delay


def test_of_several_limits_the_exhausted_one_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "20s",
        "x-ratelimit-remaining-tokens": "9000",
        "x-ratelimit-reset-tokens": "6m0s",
    }

    assert retry_after(headers, now=NOW) == 20.0


def test_if_none_is_known_to_be_exhausted_the_earliest_counts() -> None:
    headers = {"x-ratelimit-reset-requests": "20s", "x-ratelimit-reset-tokens": "6m0s"}

    assert retry_after(headers, now=NOW) == 20.0


def test_anthropics_headers_are_moments() -> None:
    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:07Z",
    }

    assert retry_after(headers, now=NOW) == 7.0


def test_what_is_asked_for_outright_comes_before_a_reset() -> None:
    headers = {"retry-after": "3", "x-ratelimit-reset-requests": "20s"}

    assert retry_after(headers, now=NOW) == 3.0


def test_a_reset_asks_for_nothing_outright() -> None:
    assert asked_delay({"x-ratelimit-reset-requests": "20s"}, now=NOW) is None


@pytest.mark.parametrize("text", ["", "5", "s", "1x", "1s2", "-1s"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None
