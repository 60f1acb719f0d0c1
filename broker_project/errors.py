"""Every exception that reaches HTTP, as ``{"error": {type, code, message, param, request_id}}``.

Types are OpenAI's, so that its clients raise the right class. What no table names is a 500
that says nothing of its cause.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core import exceptions as django_errors
from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from rest_framework import exceptions as rest_errors
from rest_framework.response import Response

from llmbroker import errors as llm_errors
from tenants import errors as app_errors
from tenants.limits.headers import limit_headers

log = logging.getLogger(__name__)
T = TypeVar("T")

LONGEST_MESSAGE = 500
UNREADABLE = "The request cannot be read."
NO_COMPLETION = "The provider's answer is no chat completion."

TYPE_OF_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    402: "insufficient_quota",
    429: "rate_limit_error",
}


@dataclass(frozen=True)
class Problem:
    """What the answer says."""

    status: int
    code: str
    message: str
    param: str | None = None
    retry_after: float | None = None
    limit: Mapping[str, str | float | None] | None = None
    """Of a limit that is reached: which, whose, how large, what is left and when there is more."""

    @property
    def type(self) -> str:
        """OpenAI's name for the kind of error."""
        fallback = "api_error" if self.status >= 500 else "invalid_request_error"
        return TYPE_OF_STATUS.get(self.status, fallback)


APPLICATION_STATUS: dict[type[BaseException], int] = {
    app_errors.InvalidInput: 400,
    app_errors.NotAuthenticated: 401,
    app_errors.PermissionRefused: 403,
    app_errors.NotFound: 404,
    app_errors.Conflict: 409,
    app_errors.SecretUnavailable: 503,
}

# Status, code, and a text that replaces the exception's own, which may quote what was received.
OTHERS: dict[type[BaseException], tuple[int, str, str | None]] = {
    Http404: (404, "not_found", "No such object or page."),
    django_errors.PermissionDenied: (403, "permission_denied", "You may not do this."),
    django_errors.RequestDataTooBig: (413, "body_too_large", "The body is too large."),
    django_errors.BadRequest: (400, "bad_request", UNREADABLE),
    django_errors.SuspiciousOperation: (400, "bad_request", UNREADABLE),
    llm_errors.NoLLMAvailableError: (503, "no_llm_available", None),
    llm_errors.RateLimitError: (429, "rate_limited", "The provider has no capacity now."),
    llm_errors.AuthError: (502, "provider_key_refused", "The provider refused the key."),
    llm_errors.ContextLengthError: (400, "context_length_exceeded", None),
    llm_errors.ContentPolicyError: (400, "content_policy_violation", None),
    llm_errors.RequestRefusedError: (400, "request_refused", None),
    llm_errors.ProviderError: (502, "provider_error", "The provider failed."),
    llm_errors.InvalidProviderResponseError: (502, "invalid_provider_response", NO_COMPLETION),
    llm_errors.ConnectionFailedError: (502, "connection_failed", "The provider is out of reach."),
    llm_errors.LLMTimeoutError: (504, "timeout", "The provider did not answer in time."),
    llm_errors.StreamInterruptedError: (502, "stream_interrupted", "The answer broke off."),
    llm_errors.MissingKeyError: (400, "missing_key", None),
    llm_errors.KeyUnavailableError: (503, "secret_unavailable", "A stored key cannot be read."),
    llm_errors.UnknownModelError: (404, "model_not_found", None),
    llm_errors.ToolLoopLimitError: (400, "max_steps", None),
    llm_errors.LLMRequestError: (502, "llm_request_failed", "The request could not be completed."),
    llm_errors.UnknownCallError: (404, "unknown_call", None),
    llm_errors.EmptyRegistryError: (503, "no_models", "No model is configured."),
    llm_errors.LLMBrokerError: (503, "broker_unavailable", "The broker is not ready."),
}

# In place of DRF's own sentences, which quote what was sent (it may be a secret) or leave the
# caller without a next step.
SENTENCES = {
    "not_authenticated": "Send an access token: 'Authorization: Bearer brk_…'.",
    "unsupported_media_type": "Send JSON, with 'Content-Type: application/json'.",
    "invalid_choice": "Not one of the values allowed here: /api/docs/ lists them.",
    "does_not_exist": "No such object.",
}


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook. None means a 500 of Django's, which logs the traceback."""
    problem = problem_of(exc)
    if problem is None:
        return None
    request = context.get("request")
    if problem.status >= 500:
        log.warning(
            "%s answered %s %s", type(exc).__name__, problem.status, _request_id(request) or ""
        )
    return Response(body_of(problem, request), status=problem.status, headers=_headers(problem))


def not_found(request: HttpRequest, exception: Exception) -> JsonResponse:  # noqa: ARG001
    """Django's handler404."""
    return _json(Problem(404, "not_found", "No such page."), request)


def too_large(request: HttpRequest) -> JsonResponse:
    """To a request whose head is larger than any honest one."""
    return _json(Problem(431, "headers_too_large", "The headers are too large."), request)


def server_error(request: HttpRequest) -> JsonResponse:
    """Django's handler500."""
    return _json(Problem(500, "internal_error", "Something went wrong on our side."), request)


def problem_of(exc: BaseException) -> Problem | None:
    """What to answer to ``exc``; None if it is a fault of ours."""
    if isinstance(exc, app_errors.ApplicationError):
        status = _nearest(APPLICATION_STATUS, exc) or 400
        return Problem(status, exc.code, exc.message, exc.param)
    if isinstance(exc, rest_errors.APIException):
        return _rest_problem(exc)
    if isinstance(exc, llm_errors.LimitExceededError):
        return _limit_problem(exc)
    if entry := _nearest(OTHERS, exc):
        status, code, text = entry
        return Problem(status, code, text or str(exc), retry_after=_retry_after(exc))
    return None


def body_of(problem: Problem, request: object) -> dict[str, dict[str, Any]]:
    """The JSON of an error answer."""
    error: dict[str, Any] = {
        "type": problem.type,
        "code": problem.code,
        "message": _printable(problem.message),
        "param": problem.param and _printable(problem.param),
        "request_id": _request_id(request),
    }
    if problem.limit is not None:
        error["limit"] = dict(problem.limit)
    return {"error": error}


def _limit_problem(exc: llm_errors.LimitExceededError) -> Problem:
    """402 where money has run out, 429 where time mends it."""
    return Problem(
        402 if exc.is_money else 429,
        "budget_exceeded" if exc.is_money else "limit_exceeded",
        str(exc),
        retry_after=exc.reset_after,
        limit={
            "name": exc.name,
            "of": exc.of,
            "limit": exc.limit,
            "remaining": exc.remaining,
            "reset_after": exc.reset_after,
        },
    )


def _rest_problem(exc: rest_errors.APIException) -> Problem:
    param, detail = _first_detail(exc.detail)
    message = SENTENCES.get(str(detail.code), str(detail))
    wait: float | None = getattr(exc, "wait", None)  # of Throttled
    return Problem(exc.status_code, str(detail.code), message, param or None, wait)


def _first_detail(detail: Any) -> tuple[str, rest_errors.ErrorDetail]:
    """The first leaf of DRF's tree of details, with the dotted path to it."""
    path: list[str] = []
    while detail and not isinstance(detail, str):
        if isinstance(detail, Mapping):
            name, detail = next(iter(detail.items()))
            if name != "non_field_errors":
                path.append(str(name))
        else:
            index, detail = next((i, item) for i, item in enumerate(detail) if item)
            if not isinstance(detail, str):
                path.append(str(index))
    if not isinstance(detail, rest_errors.ErrorDetail):
        detail = rest_errors.ErrorDetail(detail or "Invalid.", code="invalid")
    return ".".join(path), detail


def _nearest(table: Mapping[type[BaseException], T], exc: BaseException) -> T | None:
    return next((table[cls] for cls in type(exc).__mro__ if cls in table), None)


def _retry_after(exc: BaseException) -> float | None:
    if isinstance(exc, llm_errors.RateLimitError):
        return exc.retry_after
    if isinstance(exc, llm_errors.NoLLMAvailableError) and exc.retry_at:
        return (exc.retry_at - timezone.now()).total_seconds()
    return None


def _headers(problem: Problem) -> dict[str, str]:
    headers: dict[str, str] = {}
    if problem.limit is not None:
        headers |= limit_headers(problem.limit)
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def _json(problem: Problem, request: HttpRequest) -> JsonResponse:
    return JsonResponse(body_of(problem, request), status=problem.status)


def _request_id(request: object) -> str | None:
    return getattr(request, "request_id", None)


def _printable(text: str) -> str:
    """Short, and encodable: messages may quote input with half a surrogate pair."""
    return text[:LONGEST_MESSAGE].encode("utf-8", "backslashreplace").decode()
