"""Every exception becomes one shape, and none tells more than it should."""

import json
import logging
from datetime import timedelta

import pytest
from django.core import exceptions as django_errors
from django.http import Http404
from django.test import RequestFactory
from django.utils import timezone
from rest_framework import exceptions as rest_errors
from rest_framework import serializers

from broker_project.errors import exception_handler, problem_of, server_error
from llmbroker import errors as llm_errors
from tenants import errors as app_errors

MARKER = "sk-fake-7Hq2mZ0pTENANTA93xLw"


class FakeRequest:
    request_id = "req_1"


def answer_to(error):
    response = exception_handler(error, {"request": FakeRequest()})
    return response.status_code, response.data["error"], response.headers


def over_limit(**kind):
    return llm_errors.LimitExceededError(
        "m", name="rpm", of="tenant", limit="5", remaining="0", reset_after=9.5, **kind
    )


APPLICATION = [
    (app_errors.InvalidInput("m"), 400, "invalid_request_error", "invalid_value"),
    (app_errors.NotAuthenticated("m"), 401, "authentication_error", "invalid_token"),
    (app_errors.PermissionRefused("m"), 403, "permission_error", "permission_denied"),
    (app_errors.NotFound("m"), 404, "not_found_error", "not_found"),
    (app_errors.Conflict("m"), 409, "conflict_error", "conflict"),
    (app_errors.SecretUnavailable("m"), 503, "api_error", "secret_unavailable"),
]
REST = [
    (rest_errors.ParseError(), 400, "invalid_request_error", "parse_error"),
    (rest_errors.AuthenticationFailed(), 401, "authentication_error", "authentication_failed"),
    (rest_errors.NotAuthenticated(), 401, "authentication_error", "not_authenticated"),
    (rest_errors.PermissionDenied(), 403, "permission_error", "permission_denied"),
    (rest_errors.NotFound(), 404, "not_found_error", "not_found"),
    (rest_errors.MethodNotAllowed("PUT"), 405, "invalid_request_error", "method_not_allowed"),
    (
        rest_errors.UnsupportedMediaType("a/b"),
        415,
        "invalid_request_error",
        "unsupported_media_type",
    ),
    (rest_errors.Throttled(wait=3), 429, "rate_limit_error", "throttled"),
]
DJANGO = [
    (Http404("tenant 7 has no key 8"), 404, "not_found_error", "not_found"),
    (django_errors.PermissionDenied("why"), 403, "permission_error", "permission_denied"),
    (django_errors.RequestDataTooBig("x"), 413, "invalid_request_error", "body_too_large"),
    (django_errors.SuspiciousOperation("x"), 400, "invalid_request_error", "bad_request"),
]
ENGINE = [
    (llm_errors.NoLLMAvailableError("m", reason="timeout"), 503, "api_error", "no_llm_available"),
    (llm_errors.RateLimitError(MARKER, status=429), 429, "rate_limit_error", "rate_limited"),
    (llm_errors.AuthError(MARKER, status=401), 502, "api_error", "provider_key_refused"),
    (
        llm_errors.ContextLengthError("m", status=400),
        400,
        "invalid_request_error",
        "context_length_exceeded",
    ),
    (
        llm_errors.ContentPolicyError("m", status=400),
        400,
        "invalid_request_error",
        "content_policy_violation",
    ),
    (
        llm_errors.RequestRefusedError("m", status=422),
        400,
        "invalid_request_error",
        "request_refused",
    ),
    (llm_errors.ProviderError(MARKER, status=500), 502, "api_error", "provider_error"),
    (
        llm_errors.InvalidProviderResponseError(MARKER, model="x"),
        502,
        "api_error",
        "invalid_provider_response",
    ),
    (llm_errors.ConnectionFailedError(MARKER), 502, "api_error", "connection_failed"),
    (llm_errors.LLMTimeoutError(MARKER), 504, "api_error", "timeout"),
    (
        llm_errors.StreamInterruptedError(MARKER, llm_name="x"),
        502,
        "api_error",
        "stream_interrupted",
    ),
    (llm_errors.MissingKeyError("m"), 400, "invalid_request_error", "missing_key"),
    (llm_errors.KeyUnavailableError(MARKER), 503, "api_error", "secret_unavailable"),
    (llm_errors.UnknownModelError("m"), 404, "not_found_error", "model_not_found"),
    (llm_errors.ToolLoopLimitError("m"), 400, "invalid_request_error", "max_steps"),
    (llm_errors.UnknownCallError("m"), 404, "not_found_error", "unknown_call"),
    (llm_errors.EmptyRegistryError(MARKER), 503, "api_error", "no_models"),
    (over_limit(), 429, "rate_limit_error", "limit_exceeded"),
    (over_limit(is_money=True), 402, "insufficient_quota", "budget_exceeded"),
    (llm_errors.LLMBrokerError(MARKER), 503, "api_error", "broker_unavailable"),
    (llm_errors.LLMRequestError(MARKER), 502, "api_error", "llm_request_failed"),
]


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    APPLICATION + REST + DJANGO + ENGINE,
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_an_exception_has_its_status_type_and_code(error, status, kind, code):
    answered, body, _ = answer_to(error)
    assert (answered, body["type"], body["code"]) == (status, kind, code)
    limit = {"limit"} if isinstance(error, llm_errors.LimitExceededError) else set()
    assert set(body) == {"type", "code", "message", "param", "request_id"} | limit
    assert body["request_id"] == "req_1"
    assert body["message"]
    assert MARKER not in str(body)


def test_every_error_of_the_engine_is_in_the_table():
    named = {type(error) for error, *_ in ENGINE}
    all_of_them = {
        each
        for each in vars(llm_errors).values()
        if isinstance(each, type)
        and issubclass(each, Exception)
        and each.__module__ == "llmbroker.errors"
    }
    assert all_of_them == named


def test_an_application_error_keeps_its_words_code_and_field():
    _, body, _ = answer_to(app_errors.InvalidInput("Нет такого", code="own_code", param="field"))
    assert (body["message"], body["code"], body["param"]) == ("Нет такого", "own_code", "field")


def test_a_fault_of_ours_is_left_to_django_and_its_log():
    for error in (RuntimeError("x"), ValueError("x"), KeyError("x")):
        assert problem_of(error) is None


def test_the_answer_to_a_fault_of_ours_says_nothing_of_its_cause():
    request = RequestFactory().get("/")
    request.request_id = "req_2"
    answer = server_error(request)
    body = json.loads(answer.content)["error"]
    assert (answer.status_code, body["code"], body["request_id"]) == (
        500,
        "internal_error",
        "req_2",
    )


def test_only_a_401_asks_for_a_token():
    assert answer_to(app_errors.NotAuthenticated("m"))[2]["WWW-Authenticate"] == "Bearer"
    assert "WWW-Authenticate" not in answer_to(app_errors.PermissionRefused("m"))[2]


@pytest.mark.parametrize(("asked", "told"), [(2.1, "3"), (0, "1"), (-5, "1"), (None, None)])
def test_the_wait_that_a_provider_asks_for_is_passed_on_in_whole_seconds(asked, told):
    error = llm_errors.RateLimitError("m", status=429, retry_after=asked)
    assert answer_to(error)[2].get("Retry-After") == told


def test_the_time_at_which_a_model_comes_back_becomes_a_wait():
    soon = timezone.now() + timedelta(seconds=30)
    error = llm_errors.NoLLMAvailableError("m", reason="timeout", retry_at=soon)
    assert 28 <= int(answer_to(error)[2]["Retry-After"]) <= 31


class Inner(serializers.Serializer):
    size = serializers.IntegerField(min_value=1)
    colour = serializers.ChoiceField(["red"], required=False)


class Outer(serializers.Serializer):
    items = serializers.ListField(child=Inner())


def invalid(data):
    reader = Outer(data=data)
    with pytest.raises(serializers.ValidationError) as refused:
        reader.is_valid(raise_exception=True)
    return answer_to(refused.value)[1]


def test_a_validation_error_names_the_first_wrong_field_by_its_path():
    body = invalid({"items": [{"size": 1}, {"size": 0}]})
    assert (body["param"], body["code"]) == ("items.1.size", "min_value")


def test_an_error_about_the_whole_names_no_field():
    assert invalid([])["param"] is None


def test_a_wrong_choice_is_not_quoted():
    body = invalid({"items": [{"size": 1, "colour": MARKER}]})
    assert (body["param"], body["code"]) == ("items.0.colour", "invalid_choice")
    assert MARKER not in str(body)


@pytest.mark.parametrize("text", ["half a pair \ud83d", "x" * 10_000])
def test_a_message_is_short_and_can_always_be_sent(text):
    _, body, _ = answer_to(app_errors.InvalidInput(text, param=text))
    assert len(body["message"].encode()) < 600
    assert len(body["param"].encode()) < 600


def test_a_failure_of_a_provider_is_logged_by_its_class_alone(caplog):
    caplog.set_level(logging.DEBUG)
    answer_to(llm_errors.AuthError(MARKER, status=401))
    assert "AuthError" in caplog.text
    assert "req_1" in caplog.text
    assert MARKER not in caplog.text


def test_an_unknown_page_answers_in_the_same_shape(client, db):
    answer = client.get("/api/v1/no-such-thing")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert answer.json()["error"]["request_id"] == answer.headers["X-Request-Id"]
