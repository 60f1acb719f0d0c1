"""What went wrong with one exchange, read once from the wire and judged once by routing.verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from llmbroker.errors import (
    AuthError,
    ConnectionFailedError,
    ContentPolicyError,
    ContextLengthError,
    InvalidProviderResponseError,
    LLMRequestError,
    LLMTimeoutError,
    ProviderError,
    RateLimitError,
    RequestRefusedError,
)


class FailureKind(Enum):
    """The kinds of failure that call for different treatment."""

    RATE_LIMITED = "rate_limited"  # 429 that passes by itself
    QUOTA_EXHAUSTED = "quota_exhausted"  # 402, 429 or 400 "no credit": only its owner can mend it
    KEY_REFUSED = "key_refused"  # 401, 403 about the key
    OVERLOADED = "overloaded"  # 503, 529: the endpoint has no capacity
    SERVER_ERROR = "server_error"  # other 5xx
    MODEL_NOT_FOUND = "model_not_found"  # 404 about the model
    CONTEXT_LENGTH = "context_length"
    CONTENT_POLICY = "content_policy"
    UNSUPPORTED_PARAMETER = "unsupported_parameter"  # 400 that names a parameter we can leave out
    BAD_REQUEST = "bad_request"  # other 4xx
    INVALID_RESPONSE = "invalid_response"  # a 200 that is no completion
    MALFORMED_OUTPUT = "malformed_output"  # the model wrote what does not fit the caller's schema
    EMPTY_ANSWER = "empty_answer"  # a 200 with neither text nor tool calls
    LIMIT_REACHED = "limit_reached"  # a 200 whose limit was used up before the first word
    CONNECT = "connect"  # nothing was sent
    DISCONNECTED = "disconnected"  # sent, and the connection broke before the answer
    TIMEOUT = "timeout"  # sent, and no answer in time: perhaps billed
    STREAM_CUT = "stream_cut"  # the stream ended or stalled inside the answer


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed exchange. ``detail`` is short and scrubbed; ``retry_after`` is in seconds.

    ``param`` is the parameter that an UNSUPPORTED_PARAMETER names. ``code`` is the
    provider's own machine-readable code, where it gave one. ``should_retry`` is what the
    provider itself says about another try (``x-should-retry``).
    """

    kind: FailureKind
    status: int | None = None
    detail: str = ""
    retry_after: float | None = None
    param: str | None = None
    code: str | None = None
    should_retry: bool | None = None

    def to_error(self, llm_name: str) -> LLMRequestError:
        """The exception that tells a caller of ``llm_name`` about this failure."""
        text = f"{llm_name}: {_SENTENCES[self.kind]}"
        if self.status is not None:
            text += f" (HTTP {self.status})"
        if self.detail:
            text += f": {self.detail}"
        return self._error(text, llm_name)

    def _error(self, text: str, llm_name: str) -> LLMRequestError:
        kind, status = self.kind, self.status if self.status is not None else 200
        if kind in _RATE_KINDS:
            return RateLimitError(
                text, status=status, detail=self.detail, retry_after=self.retry_after
            )
        if kind in _PROVIDER_ERRORS:
            return _PROVIDER_ERRORS[kind](text, status=status, detail=self.detail)
        if kind in _NO_ANSWER:
            return InvalidProviderResponseError(text, model=llm_name, detail=self.detail)
        if kind is FailureKind.TIMEOUT:
            return LLMTimeoutError(text)
        return ConnectionFailedError(text)


_RATE_KINDS = frozenset(
    {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.QUOTA_EXHAUSTED}
)

_NO_ANSWER = frozenset(
    {
        FailureKind.INVALID_RESPONSE,
        FailureKind.MALFORMED_OUTPUT,
        FailureKind.EMPTY_ANSWER,
        FailureKind.LIMIT_REACHED,
        FailureKind.STREAM_CUT,
    }
)

_PROVIDER_ERRORS: dict[FailureKind, type[ProviderError]] = {
    FailureKind.KEY_REFUSED: AuthError,
    FailureKind.CONTEXT_LENGTH: ContextLengthError,
    FailureKind.CONTENT_POLICY: ContentPolicyError,
    FailureKind.BAD_REQUEST: RequestRefusedError,
    FailureKind.UNSUPPORTED_PARAMETER: RequestRefusedError,
    FailureKind.MODEL_NOT_FOUND: RequestRefusedError,
    FailureKind.SERVER_ERROR: ProviderError,
}

_SENTENCES: dict[FailureKind, str] = {
    FailureKind.RATE_LIMITED: "the provider's rate limit is reached",
    FailureKind.QUOTA_EXHAUSTED: "the key's quota or credit is used up",
    FailureKind.KEY_REFUSED: "the provider refused the key",
    FailureKind.OVERLOADED: "the provider is overloaded",
    FailureKind.SERVER_ERROR: "the provider failed",
    FailureKind.MODEL_NOT_FOUND: "the provider does not know this model",
    FailureKind.CONTEXT_LENGTH: "the messages do not fit the model's context window",
    FailureKind.CONTENT_POLICY: "the provider refuses this content",
    FailureKind.UNSUPPORTED_PARAMETER: "the model does not take a parameter",
    FailureKind.BAD_REQUEST: "the provider refused the request",
    FailureKind.INVALID_RESPONSE: "the answer is no chat completion",
    FailureKind.MALFORMED_OUTPUT: "the model wrote a call or JSON that does not fit the schema",
    FailureKind.EMPTY_ANSWER: "the answer holds neither text nor tool calls",
    FailureKind.LIMIT_REACHED: "the token limit was reached before the answer began",
    FailureKind.CONNECT: "the provider could not be reached",
    FailureKind.DISCONNECTED: "the connection broke before the answer",
    FailureKind.TIMEOUT: "no answer in time",
    FailureKind.STREAM_CUT: "the answer broke off",
}


class ExchangeError(Exception):
    """Carries a Failure from where it is seen to the verdict. Never leaves the engine."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind.value)
        self.failure = failure
