"""Reads an error answer of any provider into a Failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from llmbroker.wire.failure import Failure, FailureKind
from llmbroker.wire.retry_after import retry_after
from llmbroker.wire.scrub import scrubbed


def read_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str] = (),
    now: datetime,
) -> Failure:
    """What the error answer means; ``secrets`` never appear in it."""
    detail = scrubbed(body.decode("utf-8", "replace"), secrets)[:300]
    kind = FailureKind.SERVER_ERROR if status >= 500 else FailureKind.BAD_REQUEST
    if status in (401, 403):
        kind = FailureKind.KEY_REFUSED
    elif status == 429:
        kind = FailureKind.RATE_LIMITED
    elif status in (503, 529):
        kind = FailureKind.OVERLOADED
    return Failure(kind, status, detail, retry_after(headers, now=now))
