"""What a failure means: the one table that decides cooling, failover and what the caller sees.

``python -m llmbroker.routing.verdict`` prints it as the Markdown that docs/routing.md holds.
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
    FailureKind.EMPTY_ANSWER: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.LIMIT_REACHED: Verdict(_ERROR, Cools.NOTHING, 0, Next.MOVE_ON),
    FailureKind.CONNECT: Verdict(_AWAY, Cools.HOST, 5, Next.MOVE_ON),
    FailureKind.DISCONNECTED: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
    FailureKind.TIMEOUT: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON_ONCE),
    FailureKind.STREAM_CUT: Verdict(_ERROR, Cools.MODEL, 5, Next.MOVE_ON),
}


def as_markdown() -> str:
    """The table, as the documentation shows it."""
    lines = [
        "| outcome | journaled as | cools | first cooldown | then |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, verdict in VERDICTS.items():
        seconds = f"{verdict.seconds:g} s" if verdict.seconds else "–"
        lines.append(
            f"| {kind.value} | {verdict.status.value} | {verdict.cools.value} | {seconds} |"
            f" {verdict.next.value} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    sys.stdout.write(as_markdown() + "\n")
