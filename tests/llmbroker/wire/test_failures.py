"""What an error answer means."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from llmbroker.wire.failure import Failure, FailureKind
from llmbroker.wire.failures import read_failure
from tests.llmbroker.wire.streams import recorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ERRORS = tomllib.loads(Path(__file__).with_name("errors.toml").read_text("utf-8"))["error"]
KEY = "tenant-secret-7Hq2mZ0pTENANTA93xLw"


def read(status: int, body: object = b"", **headers: str) -> Failure:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_failure(status, named, raw, secrets=[KEY], now=NOW)


def openai(message: str = "", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.BAD_REQUEST),
        (401, FailureKind.KEY_REFUSED),
        (402, FailureKind.QUOTA_EXHAUSTED),
        (403, FailureKind.KEY_REFUSED),
        (404, FailureKind.MODEL_NOT_FOUND),
        (405, FailureKind.BAD_REQUEST),
        (408, FailureKind.TIMEOUT),
        (409, FailureKind.SERVER_ERROR),
        (413, FailureKind.CONTEXT_LENGTH),
        (422, FailureKind.BAD_REQUEST),
        (425, FailureKind.SERVER_ERROR),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.SERVER_ERROR),
        (502, FailureKind.SERVER_ERROR),
        (503, FailureKind.OVERLOADED),
        (504, FailureKind.SERVER_ERROR),
        (529, FailureKind.OVERLOADED),
        (302, FailureKind.SERVER_ERROR),
    ],
)
def test_without_a_body_the_status_decides(status: int, kind: FailureKind) -> None:
    assert read(status).kind is kind


@pytest.mark.parametrize("case", ERRORS, ids=[case["says"] for case in ERRORS])
def test_structured_fields_decide_before_words_and_words_before_the_status(
    case: dict[str, Any],
) -> None:
    failure = read(case["status"], case["body"].encode())

    assert (failure.kind.value, failure.param) == (case["kind"], case.get("param"))
    assert failure.status == case["status"]


def test_recorded_errors() -> None:
    assert read(400, recorded("bad-request-no-messages.json")).kind is FailureKind.BAD_REQUEST
    assert read(400, recorded("context-overflow.json")).kind is FailureKind.CONTEXT_LENGTH


# --- how long ---


def test_the_headers_say_how_long() -> None:
    assert read(429, retry_after="30").retry_after == 30.0
    assert read(429, x_ratelimit_reset_requests="6m0s").retry_after == 360.0
    assert read(503, retry_after="5").retry_after == 5.0


def test_a_rate_limits_reset_says_nothing_about_another_failure() -> None:
    assert read(500, x_ratelimit_reset_requests="6m0s").retry_after is None
    assert read(500, retry_after="2").retry_after == 2.0


@pytest.mark.parametrize(
    ("message", "delay"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 1m2.5s. Visit …", 62.5),
        ("Please retry in 45.578569677s.", 45.578569677),
        ("Please try again in 120ms", 0.12),
        ("Please try again later", None),
    ],
)
def test_else_the_words_do(message: str, delay: float | None) -> None:
    assert read(429, openai(message, code="rate_limit_exceeded")).retry_after == delay


def gemini(*quotas: str, delay: str = "34.07s") -> list[object]:
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": quota} for quota in quotas],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    message = "You exceeded your current quota, please check your plan and billing details."
    return [
        {
            "error": {
                "code": 429,
                "message": message,
                "status": "RESOURCE_EXHAUSTED",
                "details": details,
            }
        }
    ]


def test_geminis_quota_per_minute_passes_and_its_quota_per_day_does_not() -> None:
    per_minute = read(429, gemini("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"))
    per_day = read(429, gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier"))

    assert (per_minute.kind, per_minute.retry_after) == (FailureKind.RATE_LIMITED, 34.07)
    assert per_day.kind is FailureKind.QUOTA_EXHAUSTED


def test_a_quota_that_passes_in_seconds_is_a_rate_limit() -> None:
    body = openai("You exceeded your current quota. Please retry in 11.6s.")

    assert read(429, body).kind is FailureKind.RATE_LIMITED


def test_a_402_with_a_wait_is_a_limit_and_not_the_end_of_the_money() -> None:
    assert read(402, retry_after="3").kind is FailureKind.RATE_LIMITED


# --- the detail ---


def test_a_web_page_gives_its_title() -> None:
    page = (
        b"<!DOCTYPE html><html><head><title>x.test | 502:\n Bad gateway</title></head>"
        + b"x" * 9000
    )

    failure = read(502, page)

    assert (failure.kind, failure.detail) == (FailureKind.SERVER_ERROR, "x.test | 502: Bad gateway")


@pytest.mark.parametrize("status", [400, 403, 405])
def test_a_web_page_is_the_word_of_a_gateway_and_not_about_key_or_request(status: int) -> None:
    assert (
        read(status, b"<html><body>Attention required!</body></html>").kind
        is FailureKind.SERVER_ERROR
    )


def test_the_innermost_message_is_the_one_to_show() -> None:
    inner = json.dumps(
        {"error": {"message": "Unexpected role 'user' after role 'tool'", "code": "3230"}}
    )
    body = {
        "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner}}
    }

    failure = read(400, body)

    assert failure.detail == "Unexpected role 'user' after role 'tool'"
    assert failure.code == "3230"


@pytest.mark.parametrize(
    "body",
    [
        openai("boom"),
        {"error": "boom"},
        {"message": "boom"},
        {"detail": "boom"},
        {"detail": [{"loc": ["body", "messages"], "msg": "boom", "type": "missing"}]},
        {"errors": [{"message": "boom"}]},
        [{"error": {"message": "boom"}}],
        {"error": {"message": json.dumps({"error": {"message": "boom"}})}},
        b"boom",
        b"boom\n",
    ],
)
def test_the_message_is_found_in_every_shape(body: object) -> None:
    assert read(400, body).detail == "boom"


def test_the_detail_is_one_short_line() -> None:
    detail = read(500, b"one\ntwo\t" + b"x" * 5000).detail

    assert detail.startswith("one two x")
    assert len(detail) == 300


@pytest.mark.parametrize("body", [b"\xff\x00\xfe", b'{"error":{"message":"a\\u0000b\\ud83d"}}'])
def test_the_detail_can_be_stored(body: bytes) -> None:
    detail = read(500, body).detail

    assert "\x00" not in detail
    assert detail.encode()


def test_the_key_is_in_no_part_of_it() -> None:
    failure = read(401, openai(f"Incorrect API key provided: {KEY}", code=KEY))

    assert failure.kind is FailureKind.KEY_REFUSED
    assert not any(KEY[at : at + 8] in repr(failure) for at in range(len(KEY) - 7))


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"null", b"[]", b'{"error":[[[[[[[[[[1]]]]]]]]]]}']
)
def test_no_body_is_too_odd(body: bytes) -> None:
    assert read(500, body).kind is FailureKind.SERVER_ERROR
