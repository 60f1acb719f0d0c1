"""Reads an error answer of any provider into a Failure: structured fields first, text second."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from llmbroker.text import clip, storable
from llmbroker.wire.error_body import ErrorBody, read_body, read_error
from llmbroker.wire.error_words import kind_of_codes, kind_of_text
from llmbroker.wire.failure import Failure, FailureKind
from llmbroker.wire.params import refused_param
from llmbroker.wire.retry_after import asked_delay, parse_duration, retry_after
from llmbroker.wire.scrub import scrubbed

_SHOULD_RETRY = "x-should-retry"
_DETAIL_LENGTH = 300
_CODE_LENGTH = 64
_WHITE_SPACE = re.compile(r"\s+")
_TRY_AGAIN_IN = re.compile(r"(?:try again|retry) in ((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)", re.ASCII)

_LIMITS = frozenset({FailureKind.RATE_LIMITED, FailureKind.QUOTA_EXHAUSTED, FailureKind.OVERLOADED})

_BY_STATUS = {
    401: FailureKind.KEY_REFUSED,
    402: FailureKind.QUOTA_EXHAUSTED,
    403: FailureKind.KEY_REFUSED,
    404: FailureKind.MODEL_NOT_FOUND,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER_ERROR,  # a conflict inside the provider: another try may pass
    413: FailureKind.CONTEXT_LENGTH,
    425: FailureKind.SERVER_ERROR,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,  # Groq: no capacity in this service tier
    499: FailureKind.SERVER_ERROR,
    503: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}

_ABOUT_THE_REQUEST = frozenset(
    {
        FailureKind.CONTEXT_LENGTH,
        FailureKind.QUOTA_EXHAUSTED,
        FailureKind.KEY_REFUSED,
        FailureKind.CONTENT_POLICY,
        FailureKind.MODEL_NOT_FOUND,
    }
)

# What the wording of a message may add to each status; to those not listed, nothing.
_WORDS_COUNT_FOR: dict[int, AbstractSet[FailureKind]] = {
    400: _ABOUT_THE_REQUEST,
    401: {FailureKind.QUOTA_EXHAUSTED},
    403: {FailureKind.CONTENT_POLICY, FailureKind.QUOTA_EXHAUSTED, FailureKind.MODEL_NOT_FOUND},
    404: {FailureKind.CONTENT_POLICY},
    422: _ABOUT_THE_REQUEST,
    429: {FailureKind.QUOTA_EXHAUSTED, FailureKind.OVERLOADED},
    500: {FailureKind.CONTEXT_LENGTH, FailureKind.OVERLOADED},
}

# The status an error would have had, had the provider known before it sent 200.
_STATUS_OF = {
    FailureKind.RATE_LIMITED: 429,
    FailureKind.QUOTA_EXHAUSTED: 402,
    FailureKind.KEY_REFUSED: 401,
    FailureKind.OVERLOADED: 529,
    FailureKind.SERVER_ERROR: 500,
    FailureKind.MODEL_NOT_FOUND: 404,
    FailureKind.CONTEXT_LENGTH: 400,
    FailureKind.CONTENT_POLICY: 400,
    FailureKind.UNSUPPORTED_PARAMETER: 400,
    FailureKind.BAD_REQUEST: 400,
}


def read_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str] = (),
    now: datetime,
) -> Failure:
    """What an answer with an error status means. ``secrets`` never appear in it."""
    said = read_body(body)
    kind, param = _kind(status, said)
    asked = asked_delay(headers, now=now)
    if status == 402 and asked is not None:
        kind = FailureKind.RATE_LIMITED  # OpenRouter: there is money, but too much is in flight
    delay = retry_after(headers, now=now) if kind in _LIMITS else asked
    failure = _failure(kind, status, said, param=param, delay=delay, secrets=secrets)
    return replace(failure, should_retry=_should_retry(headers))


def read_embedded_failure(raw: object, *, secrets: Sequence[str] = ()) -> Failure:
    """What an error object means that came in an answer or a stream with status 200."""
    said = read_error(raw)
    kind, param = _kind(said.status or 200, said)
    status = said.status or _STATUS_OF.get(kind, 200)
    return _failure(kind, status, said, param=param, delay=None, secrets=secrets)


def detail_of(text: str, secrets: Sequence[str] = ()) -> str:
    """``text`` as a detail: one line of at most 300 characters, storable, without keys."""
    line = _WHITE_SPACE.sub(" ", scrubbed(storable(text), secrets)).strip()
    return clip(line, _DETAIL_LENGTH)


def _should_retry(headers: Mapping[str, str]) -> bool | None:
    """What OpenAI and Anthropic say, and their own clients heed."""
    said = next((value for name, value in headers.items() if name.lower() == _SHOULD_RETRY), "")
    return {"true": True, "false": False}.get(said.strip().lower())


def _failure(
    kind: FailureKind,
    status: int,
    said: ErrorBody,
    *,
    param: str | None,
    delay: float | None,
    secrets: Sequence[str],
) -> Failure:
    if delay is None and kind in _LIMITS:
        delay = _delay_in(said)
    code = detail_of(said.code, secrets)[:_CODE_LENGTH] if said.code else None
    return Failure(
        kind, status, detail_of(said.message, secrets), retry_after=delay, param=param, code=code
    )


def _kind(status: int, said: ErrorBody) -> tuple[FailureKind, str | None]:
    kind = _kind_by_status(status, said) if status == 413 else kind_of_codes(said.codes)
    if kind is None or (kind is FailureKind.SERVER_ERROR and status in _BY_STATUS):
        kind = _kind_by_status(status, said)  # "server_error" says less than 503 does
    if kind is FailureKind.UNSUPPORTED_PARAMETER:
        param = said.param or refused_param(said.message)
    elif kind is FailureKind.BAD_REQUEST:
        param = refused_param(said.message)
    else:
        return kind, None
    return (FailureKind.UNSUPPORTED_PARAMETER if param else FailureKind.BAD_REQUEST), param


def _kind_by_status(status: int, said: ErrorBody) -> FailureKind:
    if status < 400:
        return kind_of_text(said.message) or FailureKind.SERVER_ERROR
    if said.is_html and status not in (401, 404, 408, 413, 429, 503, 529):
        return FailureKind.SERVER_ERROR  # a page of some gateway: the API has not spoken
    by_words = kind_of_text(said.message, _WORDS_COUNT_FOR.get(status, frozenset()))
    if by_words is FailureKind.QUOTA_EXHAUSTED and status == 429 and _delay_in(said) is not None:
        by_words = None  # a quota that passes in seconds is a rate limit
    default = FailureKind.SERVER_ERROR if status >= 500 else FailureKind.BAD_REQUEST
    return by_words or _BY_STATUS.get(status, default)


def _delay_in(said: ErrorBody) -> float | None:
    """The wait that the body asks for: in google.rpc's RetryInfo, or in words."""
    if said.delay is not None:
        return said.delay
    found = _TRY_AGAIN_IN.search(said.message)
    return parse_duration(found[1]) if found else None
