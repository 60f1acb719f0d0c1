"""Every exception a host of llmbroker may catch.

LLMBrokerError (a RuntimeError)        set-up or storage is wrong, whatever the request
├── EmptyRegistryError                 no model is configured at all
└── UnknownCallError                   a rating names no answered call

LLMRequestError                        this one request could not be completed
├── NoLLMAvailableError                no model of the pool could take it now
├── ProviderError                      the provider answered with an error status
│   ├── AuthError                      401, 403: the key was refused
│   ├── RateLimitError                 429, 503, 529: too much, for now
│   └── RequestRefusedError            other 4xx: the request itself is at fault
│       ├── ContextLengthError         the prompt does not fit the model's window
│       └── ContentPolicyError         the provider refuses the content
├── InvalidProviderResponseError       a 200 that is no answer
├── ConnectionFailedError              no connection, or it broke before the answer
├── LLMTimeoutError                    no answer in time
├── StreamInterruptedError             a stream died after its first content
├── MissingKeyError                    no key is stored for the model: nothing was sent
├── KeyUnavailableError                a key is stored but cannot be read: nothing was sent
├── UnknownModelError                  no model of that name or alias
├── LimitExceededError                 a limit of whoever pays is reached: nothing was sent
└── ToolLoopLimitError                 the model still wanted tools after max_steps
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmbroker.models import Usage


class LLMBrokerError(RuntimeError):
    """Set-up or storage failed; no single request is at fault."""


class EmptyRegistryError(LLMBrokerError):
    """The registry holds no model."""


class UnknownCallError(LLMBrokerError):
    """A rating named a call or trace that has no answered call."""


class LLMRequestError(Exception):
    """This request could not be completed."""


class NoLLMAvailableError(LLMRequestError):
    """No model of the pool could take the request.

    ``reason`` is one of ``empty_pool``, ``no_keys``, ``all_disabled``, ``excluded``
    (every candidate failed this very call) or ``timeout`` (the wait ran out).
    ``retry_at`` is when the first candidate comes back, where that is known.
    """

    def __init__(self, message: str, *, reason: str, retry_at: datetime | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_at = retry_at


class ProviderError(LLMRequestError):
    """The provider answered with an error; ``status`` is HTTP's, ``detail`` short and scrubbed."""

    def __init__(self, message: str, *, status: int, detail: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail


class AuthError(ProviderError):
    """The key was sent and refused."""


class RateLimitError(ProviderError):
    """The provider has no capacity for this key now; ``retry_after`` is in seconds, if known."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        detail: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, detail=detail)
        self.retry_after = retry_after


class RequestRefusedError(ProviderError):
    """The request itself is at fault: another key or another try would not help."""


class ContextLengthError(RequestRefusedError):
    """The messages do not fit the model's context window."""


class ContentPolicyError(RequestRefusedError):
    """The provider refuses to answer this content; the refusal is never routed round."""


class InvalidProviderResponseError(LLMRequestError):
    """A 200 whose body is no chat completion, or one with neither text nor tool calls."""

    def __init__(self, message: str, *, model: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.model = model
        self.detail = detail


class ConnectionFailedError(LLMRequestError):
    """The provider could not be reached, or the connection broke before the answer."""


class LLMTimeoutError(LLMRequestError):
    """No answer within the time allowed. The provider may have billed the attempt."""


class StreamInterruptedError(LLMRequestError):
    """A stream died after content had reached the caller, so no other model may continue it."""

    def __init__(self, message: str, *, llm_name: str) -> None:
        super().__init__(message)
        self.llm_name = llm_name


class MissingKeyError(LLMRequestError):
    """The model's ``api_key_ref`` resolves to no key; nothing was sent."""


class KeyUnavailableError(LLMRequestError):
    """A key is stored but cannot be read. Nothing was sent, and no other payer was charged."""


class UnknownModelError(LLMRequestError):
    """No configured model has that name or alias."""


class LimitExceededError(LLMRequestError):
    """A limit of whoever pays does not let the request through. Nothing was sent.

    ``name`` says which limit, ``of`` whose; ``remaining`` is what is left of ``limit``, and
    ``reset_after`` in how many seconds there is more. ``is_money`` marks a spent budget.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str,
        of: str,
        limit: str,
        remaining: str,
        reset_after: float | None,
        is_money: bool = False,
    ) -> None:
        super().__init__(message)
        self.name = name
        self.of = of
        self.limit = limit
        self.remaining = remaining
        self.reset_after = reset_after
        self.is_money = is_money


class ToolLoopLimitError(LLMRequestError):
    """The model still asked for tools after ``max_steps`` calls.

    ``messages`` is the conversation so far (ready to be continued) and ``run_usage`` what
    all its calls used together.
    """

    def __init__(
        self,
        message: str,
        *,
        messages: list[dict[str, Any]] | None = None,
        run_usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.messages = messages or []
        self.run_usage = run_usage
