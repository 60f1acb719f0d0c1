"""What an error answer means."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from llmbroker.wire.failure import Failure, FailureKind
from llmbroker.wire.failures import read_failure
from tests.llmbroker.wire.streams import recorded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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


C = FailureKind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # too long
        (
            400,
            openai("too many tokens (131073 > 131072)", code="context_length_exceeded"),
            C.CONTEXT_LENGTH,
        ),
        (400, openai("This model's maximum context length is 8192 tokens"), C.CONTEXT_LENGTH),
        (
            400,
            {"type": "error", "error": {"message": "prompt is too long: 210000 tokens"}},
            C.CONTEXT_LENGTH,
        ),
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count exceeds the maximum",
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
            C.CONTEXT_LENGTH,
        ),
        (500, {"error": "the request exceeds the available context size"}, C.CONTEXT_LENGTH),
        (
            413,
            openai(
                "Request too large for model on tokens per minute (TPM)", code="rate_limit_exceeded"
            ),
            C.CONTEXT_LENGTH,
        ),
        # no money
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Your credit balance is too low.",
                },
            },
            C.QUOTA_EXHAUSTED,
        ),
        (402, {"error": {"message": "Insufficient Balance"}}, C.QUOTA_EXHAUSTED),
        (
            403,
            {"code": "permission", "error": "Your team doesn't have any credits yet."},
            C.QUOTA_EXHAUSTED,
        ),
        (
            429,
            openai("You exceeded your current quota", code="insufficient_quota"),
            C.QUOTA_EXHAUSTED,
        ),
        (
            429,
            openai("You exceeded your current quota, check your billing details"),
            C.QUOTA_EXHAUSTED,
        ),
        # too often
        (
            429,
            openai(
                "Rate limit reached on requests per min",
                code="rate_limit_exceeded",
                type="requests",
            ),
            C.RATE_LIMITED,
        ),
        (
            429,
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {"raw": "x is temporarily rate-limited upstream"},
                }
            },
            C.RATE_LIMITED,
        ),
        (
            429,
            {
                "object": "error",
                "message": "Service tier capacity exceeded",
                "type": "service_tier_capacity_exceeded",
                "code": "3505",
            },
            C.OVERLOADED,
        ),
        # the key
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "API key not valid. Please pass a valid API key.",
                        "status": "INVALID_ARGUMENT",
                        "details": [{"reason": "API_KEY_INVALID"}],
                    }
                }
            ],
            C.KEY_REFUSED,
        ),
        (
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: xa***",
            },
            C.KEY_REFUSED,
        ),
        (401, openai("Incorrect API key provided", code="invalid_api_key"), C.KEY_REFUSED),
        (403, openai("unsupported", code="unsupported_country_region_territory"), C.KEY_REFUSED),
        # the content
        (
            400,
            {
                "error": {
                    "code": "content_filter",
                    "message": "filtered",
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            },
            C.CONTENT_POLICY,
        ),
        (
            400,
            openai("rejected as a result of our safety system", code="content_policy_violation"),
            C.CONTENT_POLICY,
        ),
        (
            403,
            {
                "error": {
                    "code": 403,
                    "message": "x requires moderation",
                    "metadata": {"reasons": ["violence"], "flagged_input": "…"},
                }
            },
            C.CONTENT_POLICY,
        ),
        # the model
        (
            404,
            {"error": {"message": "The model `gpt-9` does not exist", "code": "model_not_found"}},
            C.MODEL_NOT_FOUND,
        ),
        (
            400,
            {
                "object": "error",
                "message": "Invalid model: foo",
                "type": "invalid_model",
                "code": "1500",
            },
            C.MODEL_NOT_FOUND,
        ),
        (
            400,
            {"error": {"message": "foo/bar is not a valid model ID", "code": 400}},
            C.MODEL_NOT_FOUND,
        ),
        (403, openai("no access to model `gpt-9`", code="model_not_found"), C.MODEL_NOT_FOUND),
        # the provider
        (
            503,
            [
                {
                    "error": {
                        "code": 503,
                        "message": "The model is overloaded.",
                        "status": "UNAVAILABLE",
                    }
                }
            ],
            C.OVERLOADED,
        ),
        (
            500,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            C.OVERLOADED,
        ),
        (400, openai("Failed to call a function", code="tool_use_failed"), C.INVALID_RESPONSE),
        # the request
        (
            400,
            openai(
                "Invalid schema for function 'f'",
                param="tools[0].function.parameters",
                code="invalid_function_parameters",
            ),
            C.BAD_REQUEST,
        ),
        (400, openai("max_tokens must be at most 4096"), C.BAD_REQUEST),
        (400, recorded("bad-request-no-messages.json"), C.BAD_REQUEST),
        (400, recorded("context-overflow.json"), C.CONTEXT_LENGTH),
    ],
)
def test_structured_fields_decide_before_words_and_words_before_the_status(
    status: int, body: object, kind: FailureKind
) -> None:
    assert read(status, body).kind is kind


# --- parameters that can be left out or renamed ---


@pytest.mark.parametrize(
    ("status", "body", "param"),
    [
        (
            400,
            openai(
                "'max_tokens' cannot be used with this model; send 'max_completion_tokens'.",
                param="max_tokens",
                code="unsupported_parameter",
            ),
            "max_tokens",
        ),
        (
            400,
            openai(
                "'parallel_tool_calls' cannot be used with this model.",
                param="parallel_tool_calls",
                code="unsupported_parameter",
            ),
            "parallel_tool_calls",
        ),
        (
            400,
            openai(
                "Unsupported value: 'temperature' does not support 0.2",
                param="temperature",
                code="unsupported_value",
            ),
            "temperature",
        ),
        (
            400,
            {
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'not permitted'}]",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
            "max_completion_tokens",
        ),
        (
            422,
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "max_completion_tokens"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                },
            },
            "max_completion_tokens",
        ),
        (
            422,
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "stream_options", "include_usage"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                },
            },
            "stream_options",
        ),
        (
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "Argument not supported on this model: presencePenalty",
            },
            "presence_penalty",
        ),
        (
            400,
            {"error": "Model grok-9 does not support parameter presencePenalty."},
            "presence_penalty",
        ),
        (400, openai("property 'store' is unsupported, did you mean 'stop'?"), "store"),
        (
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": 'Invalid JSON payload received. Unknown name "frequency_penalty": Cannot find field.',
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
            "frequency_penalty",
        ),
        (400, openai("`temperature` is deprecated for this model."), "temperature"),
    ],
)
def test_a_parameter_that_the_request_can_do_without_is_named(
    status: int, body: object, param: str
) -> None:
    failure = read(status, body)

    assert (failure.kind, failure.param) == (FailureKind.UNSUPPORTED_PARAMETER, param)


@pytest.mark.parametrize(
    "body",
    [
        openai(
            "Unknown parameter: 'messages[1].foo'",
            param="messages[1].foo",
            code="unknown_parameter",
        ),
        openai(
            "'tools' is not supported by this model", param="tools", code="unsupported_parameter"
        ),
        openai("response_format is not supported"),
    ],
)
def test_a_parameter_that_the_request_cannot_do_without_is_a_bad_request(body: object) -> None:
    failure = read(400, body)

    assert (failure.kind, failure.param) == (FailureKind.BAD_REQUEST, None)


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
