"""Takes keys out of text that leaves the engine: error details, logs, the journal."""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"

_PIECE = 8  # a shorter piece of a secret gives nothing away
_SHORTEST_SECRET = 4  # a shorter "secret" is a placeholder, and would blot out ordinary words

_KEY_LIKE = (
    # sk-…, gsk_…, xai-… and the like: a known prefix and eight characters more
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|csk|hf|brk|pplx|nvapi|tgp|r8|fw)[-_][\w-]{8,}"), MASK),
    (re.compile(r"\bAIza[\w-]{20,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), MASK),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {MASK}"),
    (
        re.compile(r"([?&;][\w.-]*(?:key|token|secret|password|sig)=)[^&\s\"'<>]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"((?:api-key|authorization)[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]{6,}", re.IGNORECASE
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"(://)[^/\s:@]+:[^/\s@]+@"), rf"\1{MASK}@"),
)


def scrubbed(text: str, secrets: Sequence[str] = ()) -> str:
    """``text`` without ``secrets``, any eight characters of one, and all that looks like a key.

    >>> scrubbed("no such key: abcdefgh-12345", ["abcdefgh-12345"])
    'no such key: ***'
    >>> scrubbed("GET https://x.test/v1?key=secret answered 404")
    'GET https://x.test/v1?key=*** answered 404'
    """
    for secret in secrets:
        text = _without(text, secret.strip())
    for pattern, replacement in _KEY_LIKE:
        text = pattern.sub(replacement, text)
    return text


def _without(text: str, secret: str) -> str:
    if len(secret) < _SHORTEST_SECRET:
        return text
    size = min(_PIECE, len(secret))
    pieces = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    kept: list[str] = []
    hidden_until = -1
    for at, character in enumerate(text):
        if text[at : at + size] in pieces:
            if at > hidden_until:
                kept.append(MASK)
            hidden_until = at + size
        if at >= hidden_until:
            kept.append(character)
    return "".join(kept)
