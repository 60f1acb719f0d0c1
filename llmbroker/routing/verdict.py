"""What a failure means: the one table that decides cooling, failover and what the caller sees.

``python -m llmbroker.routing.verdict_table`` prints it as the Markdown that docs/routing.md holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from llmbroker.models import CallStatus
from llmbroker.wire.failure import FailureKind


class Cools(Enum):
    """What a failure puts out of use for a while."""

    NOTHING = "nothing"
    KEY = "the key at this host"
    KEY_ON_MODEL = "the key on this model"
    MODEL = "the model at this host"
    HOST = "the host"


class Next(Enum):
    """What happens to the call."""

    RETURN = "the caller gets the error"
    MOVE_ON = "the next candidate is tried"
    MOVE_ON_ONCE = "the next candidate is tried, once in this call"
    LARGER_WINDOW = "a model with a larger window is tried, if one is known"
    LEAVE = "the next candidate is tried, this one no more"
    AGAIN = "the same candidate is asked again, once; then the next"
    CORRECT = "the same candidate is asked again, corrected, once; then the next"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one kind of failure is treated.

    ``seconds`` is the first cooldown; it doubles with each failure in a row up to the cap of
    routing.health, and what the provider asks for (Retry-After) is never undercut.
    """

    status: CallStatus
    cools: Cools
    seconds: float
    next: Next


_RATE, _AWAY, _ERROR = CallStatus.RATE_LIMITED, CallStatus.UNAVAILABLE, CallStatus.ERROR

VERDICTS: dict[FailureKind, Verdict] = {
    FailureKind.RATE_LIMITED: Verdict(_RATE, Cools.KEY_ON_MODEL, 15, Next.MOVE_ON),
    FailureKind.QUOTA_EXHAUSTED: Verdict(_RATE, Cools.KEY, 900, Next.MOVE_ON),
    FailureKind.KEY_REFUSED: Verdict(_ERROR, Cools.KEY, 900, Next.MOVE_ON),
    FailureKind.OVERLOADED: Verdict(_AWAY, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.SERVER_ERROR: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.MODEL_NOT_FOUND: Verdict(_ERROR, Cools.KEY_ON_MODEL, 900, Next.MOVE_ON),
    FailureKind.CONTEXT_LENGTH: Verdict(_ERROR, Cools.NOTHING, 0, Next.LARGER_WINDOW),
    FailureKind.CONTENT_POLICY: Verdict(_ERROR, Cools.NOTHING, 0, Next.RETURN),
    FailureKind.UNSUPPORTED_PARAMETER: Verdict(_ERROR, Cools.NOTHING, 0, Next.CORRECT),
    FailureKind.BAD_REQUEST: Verdict(_ERROR, Cools.NOTHING, 0, Next.RETURN),
    FailureKind.INVALID_RESPONSE: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.MALFORMED_OUTPUT: Verdict(_ERROR, Cools.NOTHING, 0, Next.AGAIN),
    FailureKind.EMPTY_ANSWER: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.LIMIT_REACHED: Verdict(_ERROR, Cools.NOTHING, 0, Next.MOVE_ON),
    FailureKind.CONNECT: Verdict(_AWAY, Cools.HOST, 5, Next.MOVE_ON),
    FailureKind.DISCONNECTED: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.TIMEOUT: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON_ONCE),
    FailureKind.STREAM_CUT: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
}


def next_step(kind: FailureKind, *, should_retry: bool | None = None) -> Next:
    """What happens to the call; ``should_retry`` is what the provider itself says, if it does.

    A provider can call a refusal temporary, except one of the content; and it can say that the
    same request will fail there again.
    """
    step = VERDICTS[kind].next
    if should_retry is True and kind is FailureKind.BAD_REQUEST:
        return Next.AGAIN
    if should_retry is False and step in (Next.MOVE_ON, Next.AGAIN):
        return Next.LEAVE
    return step
