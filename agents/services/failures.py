"""How a failed model call reads in a run's ``last_error``."""

from __future__ import annotations

from llmbroker import errors
from llmbroker.text import clip, storable

LONGEST_MESSAGE = 500

CODES: dict[type[Exception], str] = {
    errors.NoLLMAvailableError: "no_llm_available",
    errors.RateLimitError: "rate_limited",
    errors.AuthError: "provider_key_refused",
    errors.ContextLengthError: "context_length_exceeded",
    errors.ContentPolicyError: "content_policy_violation",
    errors.RequestRefusedError: "request_refused",
    errors.ProviderError: "provider_error",
    errors.InvalidProviderResponseError: "invalid_provider_response",
    errors.ConnectionFailedError: "connection_failed",
    errors.LLMTimeoutError: "timeout",
    errors.LimitExceededError: "limit_exceeded",
    errors.MissingKeyError: "missing_key",
    errors.UnknownModelError: "model_not_found",
    errors.LLMRequestError: "llm_request_failed",
    errors.EmptyRegistryError: "no_models",
    errors.LLMBrokerError: "broker_unavailable",
}


def failure(code: str, message: str) -> dict[str, str]:
    """An error as runs and steps hold it."""
    return {"code": code, "message": clip(storable(message), LONGEST_MESSAGE)}


def failure_of(error: Exception) -> dict[str, str]:
    """A model call's error, which the engine has scrubbed of keys."""
    code = getattr(error, "code", None)  # an ApplicationError of a port says it itself
    known = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    return failure(code if isinstance(code, str) else known, str(error))
