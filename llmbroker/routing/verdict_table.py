"""Prints the verdicts as the Markdown that docs/routing.md holds.

python -m llmbroker.routing.verdict_table
"""

from __future__ import annotations

import sys

from llmbroker.routing.verdict import VERDICTS, Next, next_step
from llmbroker.wire.failure import FailureKind

_HEAD = """\
| outcome | journaled as | cools | first cooldown | then | with `x-should-retry` |
| --- | --- | --- | --- | --- | --- |"""

_NO_HEADERS = frozenset(
    {
        FailureKind.INVALID_RESPONSE,
        FailureKind.EMPTY_ANSWER,
        FailureKind.LIMIT_REACHED,
        FailureKind.CONNECT,
        FailureKind.DISCONNECTED,
        FailureKind.STREAM_CUT,
    }
)
"""Failures that no error status told of, and so no header."""


def as_markdown() -> str:
    """The table, as the documentation shows it."""
    lines = [_HEAD]
    for kind, verdict in VERDICTS.items():
        seconds = f"{verdict.seconds:g} s" if verdict.seconds else "–"
        lines.append(
            f"| {kind.value} | {verdict.status.value} | {verdict.cools.value} | {seconds} |"
            f" {verdict.next.value} | {_told(kind, verdict.next)} |"
        )
    return "\n".join(lines)


def _told(kind: FailureKind, usual: Next) -> str:
    """What changes when the provider says itself whether another try makes sense."""
    if kind in _NO_HEADERS:
        return "–"
    told = {said: next_step(kind, should_retry=said == "true") for said in ("true", "false")}
    changes = [f"`{said}`: {step.value}" for said, step in told.items() if step is not usual]
    return "; ".join(changes) or "–"


if __name__ == "__main__":
    sys.stdout.write(as_markdown() + "\n")
